/**
 * The connection to the server, and what it has told: everything that the view shows. A connection that ends, or that is
 * silent for too long, is opened again until the server answers.
 */
import { batch, signal } from '@preact/signals';
import type {
  ControlAnswer,
  ControlRequest,
  Hello,
  News,
  Sample,
  Shown,
  Tick,
} from 'tram-multicast/internal/page/wire.js';
import { EventParser, type StreamEvent } from './event-stream.js';

export type LinkState =
  | { readonly kind: 'connecting' | 'live' }
  /** Tries again. */
  | { readonly kind: 'lost'; readonly sinceMs: number }
  /** Trying again would not help. */
  | { readonly kind: 'refused'; readonly why: string };

export const link = signal<LinkState>({ kind: 'connecting' });
export const shown = signal<Shown | undefined>(undefined);
export const hasControl = signal(false);
export const samples = signal<readonly Sample[]>([]);
/** The newest first. */
export const news = signal<readonly News[]>([]);

const HISTORY_MS = 300_000;
const NEWS_MAX = 200;
const RETRY_MS = 1000;
/** The server tells something twice a second. */
const SILENCE_MS = 5000;
const TOKEN = 'tram-token';

/** Connects, and never returns unless the server refuses. */
export async function keepLink(): Promise<void> {
  if (location.protocol === 'file:') {
    link.value = { kind: 'refused', why: 'This page needs its server: run `tram watch`.' };
    return;
  }
  const token = takeToken();
  while (link.value.kind !== 'refused') {
    await listen(token).catch(() => undefined);
    if (link.value.kind === 'live' || link.value.kind === 'connecting')
      link.value = { kind: 'lost', sinceMs: Date.now() };
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/** The token of the address that the user has opened. It is taken out of the address, and kept while the tab is open. */
function takeToken(): string | null {
  const [, token] = /^#token=([\w-]+)$/.exec(location.hash) ?? [];
  if (token !== undefined) {
    sessionStorage.setItem(TOKEN, token);
    history.replaceState(null, '', location.pathname);
  }
  return sessionStorage.getItem(TOKEN);
}

function authorization(token: string | null): Record<string, string> {
  return token === null ? {} : { authorization: `Bearer ${token}` };
}

async function listen(token: string | null): Promise<void> {
  const controller = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const heard = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => controller.abort(), SILENCE_MS);
  };
  heard();
  try {
    const { signal } = controller;
    const response = await fetch('api/events', { headers: authorization(token), signal });
    if (response.status === 401 || response.status === 403) {
      link.value = { kind: 'refused', why: REFUSED };
      return;
    }
    if (!response.ok || response.body === null) return;
    const parser = new EventParser();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      heard();
      for (const event of parser.take(value)) take(event);
    }
  } finally {
    clearTimeout(timer);
  }
}

const REFUSED =
  'The server does not know this page: open the link that it has printed. Each run of the server prints a new one.';

function take({ name, data }: StreamEvent): void {
  batch(() => {
    if (name === 'hello') {
      const hello = JSON.parse(data) as Hello;
      hasControl.value = hello.hasControl;
      samples.value = hello.history;
      news.value = hello.news.toReversed();
      shown.value = hello.shown;
    } else if (name === 'tick') {
      const { sample, news: more, shown: now } = JSON.parse(data) as Tick;
      const fromMs = sample.atMs - HISTORY_MS;
      samples.value = [...samples.value.filter(({ atMs }) => atMs > fromMs), sample];
      if (more.length > 0) news.value = [...more.toReversed(), ...news.value].slice(0, NEWS_MAX);
      shown.value = now;
    }
    link.value = { kind: 'live' };
  });
}

/** Asks the server to do something. Resolves when it is done. @throws with what the server says */
export async function ask(request: ControlRequest): Promise<void> {
  const response = await fetch('api/control', {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...authorization(sessionStorage.getItem(TOKEN)),
    },
    body: JSON.stringify(request),
  });
  if (response.ok) return;
  const isJson = response.headers.get('content-type') === 'application/json';
  if (!isJson) throw new Error((await response.text()).trim());
  const { error } = (await response.json()) as ControlAnswer;
  throw new Error([error?.message, error?.hint].filter(Boolean).join('. '));
}

/** The view of a running cluster. */
import type { Shown } from 'tram-multicast/internal/page/wire.js';
import { ThemeButton } from '../shared/theme.js';
import { ConfirmDialog } from './confirm.js';
import { Groups } from './groups.js';
import { Hosts } from './hosts.js';
import { hasControl, type LinkState, link, news, shown } from './link.js';
import { Plots } from './plots.js';
import { isBroad, Tree } from './tree.js';
import { clock, count, counted } from './words.js';

export function App() {
  const now = shown.value;
  const isOld = link.value.kind !== 'live';
  return (
    <>
      <Header shown={now} />
      <main class={isOld ? 'old' : undefined}>
        <LinkNote state={link.value} shown={now} />
        {now === undefined ? null : (
          <>
            <Troubles shown={now} />
            <div class="plots">
              <Plots />
            </div>
            {isBroad(now.groups) ? (
              <div class="panel">
                <Tree groups={now.groups} />
              </div>
            ) : null}
            <div class="columns">
              <Groups shown={now} />
              <div class="side">
                <Hosts shown={now} />
                <NewsList />
              </div>
            </div>
          </>
        )}
      </main>
      <ConfirmDialog />
    </>
  );
}

const STATE_KINDS = {
  running: 'good',
  starting: 'change',
  closing: 'change',
  stalled: 'bad',
  'state-lost': 'bad',
  down: 'bad',
} as const;

function Header({ shown: now }: { readonly shown: Shown | undefined }) {
  return (
    <header>
      <h1>
        <span class="product">TRAM</span> {now?.name ?? 'live'}
      </h1>
      {now === undefined ? null : (
        <>
          <span class={`badge ${STATE_KINDS[now.state]}`}>{now.state}</span>
          <Facts shown={now} />
        </>
      )}
      <span class="link" role="status">
        <LinkWord state={link.value} />
      </span>
      <ThemeButton />
    </header>
  );
}

function Facts({ shown: now }: { readonly shown: Shown }) {
  const { groups, hosts, memory, order, durability, era, clients, answered } = now;
  const up = hosts.filter(({ state }) => state === 'up').length;
  const facts = [
    `${counted(groups.length, 'group')} of ${counted(groups[0].replicas.length, 'replica')}`,
    `${up} of ${counted(hosts.length, 'host')} up`,
    `${clients.connected} of ${counted(clients.most, 'client')} connected`,
    `${count(answered)} answered`,
    memory,
    `${order} order`,
    durability === 'none' ? undefined : `durability ${durability}, era ${era}`,
    hasControl.value ? 'with control' : undefined,
  ];
  return (
    <ul class="facts">
      {facts.map((fact) => (fact === undefined ? null : <li key={fact}>{fact}</li>))}
    </ul>
  );
}

function LinkWord({ state }: { readonly state: LinkState }) {
  const words = {
    connecting: 'connecting',
    live: 'live',
    lost: 'no connection',
    refused: 'refused',
  };
  return <span class={`badge ${state.kind === 'live' ? 'good' : 'bad'}`}>{words[state.kind]}</span>;
}

function LinkNote({
  state,
  shown: now,
}: {
  readonly state: LinkState;
  readonly shown: Shown | undefined;
}) {
  if (state.kind === 'refused') return <p class="alert">{state.why}</p>;
  if (state.kind !== 'lost') return null;
  const isDown = now?.state === 'closing';
  return (
    <p class="alert">
      {isDown ? 'The cluster was taken down, and its page ended. ' : ''}
      No connection to the server since {clock(state.sinceMs)}. The page tries again every second;
      until then it shows what it knew last.
    </p>
  );
}

function Troubles({ shown: { troubles } }: { readonly shown: Shown }) {
  if (troubles.length === 0) return null;
  return (
    <section class="alert" aria-label="Problems" role="alert">
      {troubles.map(({ what, advice }) => (
        <p key={what}>
          <b>{what}</b>: {advice}
        </p>
      ))}
    </section>
  );
}

const MARKS = { good: '▲', bad: '▼', change: '◆' } as const;
const MEANINGS = { good: 'good', bad: 'bad', change: 'change' } as const;

function NewsList() {
  return (
    <section class="panel news" aria-labelledby="news-title">
      <h2 id="news-title">Events</h2>
      {news.value.length === 0 ? (
        <p class="note">Nothing has happened since the server started.</p>
      ) : null}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and so the keyboard must reach it */}
      <div class="log" role="log" aria-labelledby="news-title" tabIndex={0}>
        <ol>
          {news.value.map(({ id, atMs, kind, text }) => (
            <li key={id} class={kind}>
              <time>{clock(atMs)}</time>
              <span aria-hidden="true" class="sign">
                {MARKS[kind]}
              </span>
              <span>
                <span class="unseen">{MEANINGS[kind]}: </span>
                {text}
              </span>
            </li>
          ))}
        </ol>
      </div>
    </section>
  );
}

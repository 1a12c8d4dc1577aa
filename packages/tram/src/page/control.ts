/** What an operator may do from the page, with `control` only. */
import type { IncomingMessage } from 'node:http';
import { ERRORS, TramError } from '../errors.js';
import type { ControlAnswer, ControlRequest } from './wire.js';

/** The cluster that is controlled. */
export interface Control {
  crash(host: number): Promise<void>;
  restart(host: number): Promise<void>;
  /** Resolves when the replica leads. */
  lead(group: number, member: number): Promise<void>;
}

const BODY_BYTES_MAX = 1024;

/** Does what the body asks for. @returns the status of the answer, and the answer */
export async function act(
  control: Control,
  request: IncomingMessage,
): Promise<{ status: number; answer: ControlAnswer }> {
  const asked = parse(await bodyOf(request));
  if (asked === undefined)
    return { status: 400, answer: { error: { message: 'not a request of the page', hint: null } } };
  try {
    await run(control, asked);
    return { status: 200, answer: {} };
  } catch (error) {
    return { status: 409, answer: { error: describe(error) } };
  }
}

function run(control: Control, asked: ControlRequest): Promise<void> {
  switch (asked.action) {
    case 'crash':
      return control.crash(asked.host);
    case 'restart':
      return control.restart(asked.host);
    case 'lead':
      return control.lead(asked.group, asked.member);
  }
}

function describe(error: unknown): NonNullable<ControlAnswer['error']> {
  if (!(error instanceof TramError)) return { message: String(error), hint: null };
  const { code, message, hint = ERRORS[code].whatToDo } = error;
  return { message, hint };
}

/** Empty if it is too long, or was not sent whole. */
async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = '';
  try {
    for await (const chunk of request.setEncoding('utf8')) {
      body += chunk;
      if (body.length > BODY_BYTES_MAX) return '';
    }
  } catch {
    return '';
  }
  return body;
}

function parse(body: string): ControlRequest | undefined {
  let asked: Partial<Record<string, unknown>>;
  try {
    asked = Object(JSON.parse(body));
  } catch {
    return undefined;
  }
  const { action, host, group, member } = asked;
  if ((action === 'crash' || action === 'restart') && isIndex(host)) return { action, host };
  if (action === 'lead' && isIndex(group) && isIndex(member)) return { action, group, member };
  return undefined;
}

function isIndex(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0;
}

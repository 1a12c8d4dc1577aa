/** Errors as clients read them. */

import { outOfMemory } from '../commands/arguments.js';
import { ErrorReply } from '../resp/reply.js';

/** The connection to the shards failed while they had the command. */
export function unknownOutcome(error: unknown): ErrorReply {
  if (error instanceof ErrorReply) return error;
  return new ErrorReply(`ERR it is not known whether this was carried out: ${messageOf(error)}`);
}

/** As `unknownOutcome`, for EXEC. */
export function execFailure(error: unknown): ErrorReply {
  const reply = unknownOutcome(error);
  return reply.message.startsWith('OOM ') ? outOfMemory('exec') : reply;
}

export function errorReplyOf(error: unknown): ErrorReply {
  return error instanceof ErrorReply ? error : new ErrorReply(`ERR ${messageOf(error)}`);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What a gateway counts of its messages to shards, for `/metrics`. */
export class Traffic {
  /** Messages with commands, and how many commands these had. */
  batches = 0;
  batchedCommands = 0;
  /** Pieces of requests that are too long for a message, and of replies that are too long for one. */
  uploadedPieces = 0;
  fetchedPieces = 0;
  /** Coordinated transactions, by how they have ended. */
  readonly transactions = {
    committed: 0,
    /** A watched key had changed. */
    changed: 0,
    /** The command found nothing, and waits. */
    waiting: 0,
    /** Other gateways have aborted each attempt: `TRYAGAIN`. */
    gaveUp: 0,
    /** It was refused, or the connection to the shards has failed. */
    failed: 0,
  };
  begunTransactions = 0;
  /** Attempts after the first: because somebody else has aborted the one before, or because a script has used more keys. */
  retriedTransactions = 0;
}

/** How many messages are on their way, and how many wait. */
export interface Pressure {
  /** Messages that shards have not replied to. They include those with which the gateway listens. */
  readonly unanswered: number;
  /** Messages that there is no room for yet. */
  readonly waiting: number;
  /** How many messages have had to wait since the start. */
  readonly heldBack: number;
}

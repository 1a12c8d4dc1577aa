/** What a gateway counts of its messages to shards, for `/metrics`. */
export class Traffic {
  /** Messages with commands, and how many commands these had. */
  batches = 0;
  batchedCommands = 0;
  /** Pieces of what was too long for a message, and of what was too long for a reply. */
  uploadedPieces = 0;
  fetchedPieces = 0;
  /** Coordinated transactions, by how they have ended. */
  readonly transactions = {
    committed: 0,
    /** A watched key had changed. */
    changed: 0,
    /** The command found nothing, and waits. */
    waiting: 0,
    /** Others have aborted each attempt: `TRYAGAIN`. */
    gaveUp: 0,
    /** It was refused, or the connection to the shards has failed. */
    failed: 0,
  };
  begunTransactions = 0;
  /** Attempts after the first: because somebody else has aborted the one before, or because a script has used more keys. */
  retriedTransactions = 0;
}

/** What is on its way, and what has to wait. */
export interface Pressure {
  /** Messages that shards have not replied to. They include those with which the gateway listens. */
  readonly unanswered: number;
  /** Messages that there is no room for yet. */
  readonly waiting: number;
  /** How many had to wait so far. */
  readonly heldBack: number;
}

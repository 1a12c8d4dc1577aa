/**
 * The completion queue of all connections of a fabric. Reading it also drives libfabric's progress: only then does it
 * send, receive, and serve what peers read and write. Called by `fabric.ts`.
 */
import { constants as systemConstants } from 'node:os';
import type { NativeFunction } from '../koffi.js';
import { CONSTANTS, FIELDS, SIZES } from './binary-interface.js';
import { Block } from './block.js';
import type { Libfabric } from './libfabric.js';

export interface CompletionSink {
  /** @param serial  of a connection, which may have ended meanwhile */
  onCompletion(serial: number, context: number): void;
  onFailure(serial: number, code: number): void;
}

/** How many completions are read at once. */
const BATCH = 64;
/** How many batches one `read` takes at most, so that it is bounded. */
const BATCHES_MAX = 16;
/** More than all connections together have in flight: some providers lose completions that do not fit. */
const SIZE = 4096;

/** An entry is the context of the operation: the caller's in the lower word, the connection's serial in the upper. */
const ENTRY_WORDS = SIZES.fi_cq_entry / 4;

const { EAGAIN } = systemConstants.errno;
const ERROR = FIELDS.fi_cq_err_entry;

export class CompletionQueue {
  readonly handle: number;
  private readonly entries: Block;
  private readonly error: Block;
  private readonly readEntries: NativeFunction;
  private readonly readError: NativeFunction;

  constructor(
    private readonly library: Libfabric,
    domain: number,
    private readonly sink: CompletionSink,
  ) {
    const { koffi } = library;
    this.entries = new Block(koffi, BATCH * SIZES.fi_cq_entry);
    this.error = new Block(koffi, SIZES.fi_cq_err_entry);
    const attributes = new Block(koffi, SIZES.fi_cq_attr);
    attributes.setWide(FIELDS.fi_cq_attr.size, SIZE);
    attributes.setWord(FIELDS.fi_cq_attr.format, CONSTANTS.FI_CQ_FORMAT_CONTEXT);
    attributes.setWord(FIELDS.fi_cq_attr.wait_obj, CONSTANTS.FI_WAIT_FD);
    this.handle = library.open('openCompletionQueue', domain, attributes.address);
    this.readEntries = library.operation('readCompletions', this.handle);
    this.readError = library.operation('readCompletionError', this.handle);
  }

  /** Pass what has completed to the sink. @returns how many completions and failures there were */
  read(): number {
    const { sink } = this;
    const { words } = this.entries;
    let total = 0;
    for (let batches = 0; batches < BATCHES_MAX; batches++) {
      const count = this.readEntries(this.handle, this.entries.address, BATCH);
      if (count === -EAGAIN) return total;
      if (count === -CONSTANTS.FI_EAVAIL) {
        this.takeError();
        total++;
        continue;
      }
      this.library.check(count, "Can't read completions");
      for (let i = 0; i < count * ENTRY_WORDS; i += ENTRY_WORDS) {
        sink.onCompletion(words[i + 1], words[i]);
      }
      total += count;
      if (count < BATCH) return total;
    }
    return total;
  }

  private takeError(): void {
    const { error } = this;
    if (this.readError(this.handle, error.address, 0) < 0) return;
    this.sink.onFailure(error.getWord(ERROR.op_context + 4), error.getWord(ERROR.err));
  }
}

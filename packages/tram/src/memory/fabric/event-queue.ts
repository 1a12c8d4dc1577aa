/**
 * Connection events: requests, established and ended connections, errors. libfabric names its objects by their
 * addresses. Called by `fabric.ts`.
 *
 * Data of unauthenticated peers arrives here. It is never longer than the provider's limit, which is far below
 * `DATA_BYTES_MAX`, and is copied before it is parsed.
 */
import { constants as systemConstants } from 'node:os';
import type { NativeFunction } from '../koffi.js';
import { CONSTANTS, FIELDS, SIZES } from './binary-interface.js';
import { Block } from './block.js';
import type { Libfabric } from './libfabric.js';

/** The endpoint of an event may have been closed meanwhile. */
export interface ConnectionSink {
  onConnected(endpoint: number, data: Uint8Array): void;
  onShutdown(endpoint: number): void;
  onError(endpoint: number, data: Uint8Array, code: number): void;
}

/** @param info  of libfabric: to accept or to reject the request with; the sink frees it */
export type RequestSink = (info: number, data: Uint8Array) => void;

const DATA_BYTES_MAX = 4096;
/** How many events one `read` takes at most, so that unauthenticated peers can't keep us from our work. */
const EVENTS_MAX = 64;
const SIZE = 1024;

const { fi_eq_cm_entry: ENTRY, fi_eq_err_entry: ERROR } = FIELDS;
const { EAGAIN } = systemConstants.errno;

/** Layout of the block: the kind of the event, then its entry, which ends with the data. Errors have their own block. */
const KIND = 0;
const EVENT = 8;
const ERROR_DATA = SIZES.fi_eq_err_entry;

export class EventQueue {
  readonly handle: number;
  private readonly event: Block;
  private readonly error: Block;
  private readonly readEvent: NativeFunction;
  private readonly readError: NativeFunction;

  constructor(
    private readonly library: Libfabric,
    fabric: number,
    private readonly sink: ConnectionSink,
    private readonly onRequest: RequestSink,
  ) {
    const { koffi } = library;
    this.event = new Block(koffi, EVENT + ENTRY.data + DATA_BYTES_MAX);
    this.error = new Block(koffi, ERROR_DATA + DATA_BYTES_MAX);
    const attributes = new Block(koffi, SIZES.fi_eq_attr);
    attributes.setWide(FIELDS.fi_eq_attr.size, SIZE);
    attributes.setWord(FIELDS.fi_eq_attr.wait_obj, CONSTANTS.FI_WAIT_FD);
    this.handle = library.open('openEventQueue', fabric, attributes.address);
    this.readEvent = library.operation('readEvent', this.handle);
    this.readError = library.operation('readEventError', this.handle);
  }

  /** Pass what has happened to the sinks. @returns how many events there were */
  read(): number {
    const { event } = this;
    const { address } = event;
    const room = ENTRY.data + DATA_BYTES_MAX;
    for (let count = 0; count < EVENTS_MAX; count++) {
      const bytes = this.readEvent(this.handle, address + KIND, address + EVENT, room, 0);
      if (bytes === -EAGAIN) return count;
      if (bytes === -CONSTANTS.FI_EAVAIL) this.takeError();
      else this.take(this.library.check(bytes, "Can't read events"));
    }
    return EVENTS_MAX;
  }

  private take(bytes: number): void {
    const { event } = this;
    const data = event.bytes.slice(EVENT + ENTRY.data, EVENT + bytes);
    const object = event.getWide(EVENT + ENTRY.fid);
    const kind = event.getWord(KIND);
    if (kind === CONSTANTS.FI_CONNREQ) this.onRequest(event.getWide(EVENT + ENTRY.info), data);
    else if (kind === CONSTANTS.FI_CONNECTED) this.sink.onConnected(object, data);
    else if (kind === CONSTANTS.FI_SHUTDOWN) this.sink.onShutdown(object);
  }

  private takeError(): void {
    const { error } = this;
    error.setWide(ERROR.err_data, error.address + ERROR_DATA);
    error.setWide(ERROR.err_data_size, DATA_BYTES_MAX);
    if (this.readError(this.handle, error.address, 0) < 0) return;
    // If libfabric has replaced the pointer, the data is its own and its length unknown: leave it alone.
    const isOurs = error.getWide(ERROR.err_data) === error.address + ERROR_DATA;
    const bytes = isOurs ? Math.min(error.getWide(ERROR.err_data_size), DATA_BYTES_MAX) : 0;
    const data = error.bytes.slice(ERROR_DATA, ERROR_DATA + bytes);
    this.sink.onError(error.getWide(ERROR.fid), data, error.getWord(ERROR.err));
  }
}

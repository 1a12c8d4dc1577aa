/**
 * The process that `bare-fabric.ts` writes to: it serves its memory, spinning or waiting as a host does, until the writer sets
 * the stop word.
 */
import { Block } from 'tram-multicast/internal/memory/fabric/block.js';
import { Fabric } from 'tram-multicast/internal/memory/fabric/fabric.js';
import {
  type FabricHandler,
  NO_OP_HANDLER,
} from 'tram-multicast/internal/memory/fabric/handler.js';
import { libfabric } from 'tram-multicast/internal/memory/fabric/libfabric.js';
import type { RemoteRegion } from 'tram-multicast/internal/memory/fabric/registration.js';
import { serveOrders } from '../load/forked.js';

/** The stop word: a value other than 0 ends `serve`. */
export const STOP_AT = 0;
export const TARGET_BYTES = 1 << 20;
/** Idle polls after which a target that does not spin goes to sleep. */
const IDLE_POLLS_MAX = 8;
const SLEEP_US = 100_000;

export interface Target {
  readonly port: number;
  readonly region: RemoteRegion;
}

/** Accepts every connection. */
const handler: FabricHandler = {
  ...NO_OP_HANDLER,
  requested: (request) => request.accept(new Uint8Array(0)),
};

let fabric: Fabric;
let memory: Block;

function open(address: string): Target {
  fabric = Fabric.open({ address });
  memory = new Block(libfabric().koffi, TARGET_BYTES);
  const { base, keyLow, keyHigh } = fabric.register(memory.address, TARGET_BYTES, 'remote');
  return { port: fabric.listen(0), region: { base, keyLow, keyHigh } };
}

function serve(spins: boolean): void {
  memory.setWord(STOP_AT, 0);
  let idlePolls = 0;
  while (memory.getWord(STOP_AT) === 0) {
    const isIdle = fabric.poll(handler) === 0;
    idlePolls = isIdle ? idlePolls + 1 : 0;
    if (!spins && idlePolls > IDLE_POLLS_MAX) fabric.wait(SLEEP_US);
  }
  // The write of the stop word must be acknowledged.
  for (let i = 0; i < 1000; i++) fabric.poll(handler);
}

if (process.send !== undefined) serveOrders({ open, serve });

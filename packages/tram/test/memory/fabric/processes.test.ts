/** `memory/fabric` between processes: the order of reads after writes, and peers that die. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Block } from '../../../src/memory/fabric/block.js';
import {
  type Connection,
  DELIVERY_COMPLETE,
  REPORT_COMPLETION,
} from '../../../src/memory/fabric/connection.js';
import type { Extents } from '../../../src/memory/fabric/extents.js';
import { Fabric } from '../../../src/memory/fabric/fabric.js';
import type { FabricHandler } from '../../../src/memory/fabric/handler.js';
import { libfabric } from '../../../src/memory/fabric/libfabric.js';
import type { Registration, RemoteRegion } from '../../../src/memory/fabric/registration.js';
import { native } from '../../../src/memory/processes/native.js';
import { LOOPBACK, NOTHING, Witness } from './pair.js';
import { needLibfabric } from './present.js';

const TARGET = fileURLToPath(new URL('./target.mjs', import.meta.url));

let child: ChildProcess;
let fabric: Fabric;
let region: RemoteRegion;
let port: number;

beforeEach(async (context) => {
  needLibfabric(context);
  child = spawn(process.execPath, [TARGET], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = await once(createInterface(child.stdout!), 'line');
  ({ port, region } = JSON.parse(line));
  fabric = Fabric.open({ address: LOOPBACK });
});
afterEach(() => {
  fabric?.close();
  child?.kill('SIGKILL');
});

function pollUntil(handler: FabricHandler, isDone: () => boolean): void {
  const giveUpAtMs = performance.now() + 50_000;
  while (!isDone()) {
    fabric.poll(handler);
    // The peer may need this core.
    native().yieldProcessor();
    if (performance.now() > giveUpAtMs) throw new Error('waited in vain');
  }
}

function connect(): Connection {
  const connection = fabric.connect(LOOPBACK, port, NOTHING);
  pollUntil(new Witness(), () => connection.state === 'open');
  return connection;
}

/**
 * Rounds of a write that is not told of and a read of its first and last word, many at a time. Each slot has its
 * own places, here and there.
 */
class Rounds extends Witness {
  static readonly SLOTS = 16;
  private static readonly SLOT_BYTES = 1 << 16;
  wrong = 0;
  confirmed = 0;
  private next = 0;
  private readonly memory: Block;
  private readonly registration: Registration;
  private readonly extents: Extents;

  constructor(
    private readonly connection: Connection,
    private readonly count: number,
  ) {
    super();
    const bytes = Rounds.SLOTS * (Rounds.SLOT_BYTES + 8);
    this.memory = new Block(libfabric().koffi, bytes);
    this.registration = fabric.register(this.memory.address, bytes, 'local');
    this.extents = fabric.createExtents();
  }

  start(slot: number): void {
    if (this.next === this.count) return;
    const round = ++this.next;
    const bytes = Rounds.bytesOf(round);
    const at = slot * Rounds.SLOT_BYTES;
    this.memory.setWord(at, round);
    this.memory.setWord(at + bytes - 4, round);
    this.post(at, at, bytes);
    this.connection.write(this.extents, 0, 0);
    this.extents.clear();
    this.extents.add(this.registration, this.resultOf(slot), region, at, 4);
    this.extents.add(this.registration, this.resultOf(slot) + 4, region, at + bytes - 4, 4);
    this.connection.read(this.extents, REPORT_COMPLETION, slot);
  }

  override completed(_: Connection, slot: number): void {
    const first = this.memory.getWord(this.resultOf(slot));
    const last = this.memory.getWord(this.resultOf(slot) + 4);
    if (first !== this.memory.getWord(slot * Rounds.SLOT_BYTES) || last !== first) this.wrong++;
    this.confirmed++;
    this.start(slot);
  }

  private post(localAt: number, remoteAt: number, bytes: number): void {
    this.extents.clear();
    this.extents.add(this.registration, localAt, region, remoteAt, bytes);
  }

  private resultOf(slot: number): number {
    return Rounds.SLOTS * Rounds.SLOT_BYTES + slot * 8;
  }

  /** Mostly small, now and then more than a socket takes at once. */
  private static bytesOf(round: number): number {
    if (round % 97 === 0) return Rounds.SLOT_BYTES;
    return round % 7 === 0 ? 4096 : 64;
  }
}

test('a read tells that all writes posted before it have landed', () => {
  const count = 10_000;
  const rounds = new Rounds(connect(), count);
  for (let slot = 0; slot < Rounds.SLOTS; slot++) rounds.start(slot);
  pollUntil(rounds, () => rounds.confirmed === count);
  expect(rounds.wrong).toBe(0);
});

test('the death of a peer is told, once', () => {
  const connection = connect();
  const witness = new Witness();
  const memory = new Block(libfabric().koffi, 4096);
  const extents = fabric.createExtents();
  extents.add(fabric.register(memory.address, 4096, 'local'), 0, region, 0, 4096);
  child.kill('SIGKILL');
  for (let i = 0; i < 100; i++) connection.write(extents, REPORT_COMPLETION | DELIVERY_COMPLETE, 0);
  pollUntil(witness, () => connection.state === 'ended');
  for (let i = 0; i < 200; i++) fabric.poll(witness);
  const ends = witness.heard.filter((what) => what === 'failed' || what === 'closed');
  expect(ends).toHaveLength(1);
});

test('a connection to a peer that hangs can be closed', () => {
  const connection = connect();
  child.kill('SIGSTOP');
  const memory = new Block(libfabric().koffi, 1 << 16);
  const extents = fabric.createExtents();
  extents.add(fabric.register(memory.address, 1 << 16, 'local'), 0, region, 0, 1 << 16);
  const witness = new Witness();
  for (let i = 0; i < 200; i++) {
    connection.write(extents, REPORT_COMPLETION | DELIVERY_COMPLETE, 0);
    fabric.poll(witness);
  }
  connection.close();
  fabric.poll(witness);
  expect(connection.state).toBe('ended');
  expect(witness.heard).toEqual([]);
});

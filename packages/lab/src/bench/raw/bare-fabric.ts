/**
 * The cost of a bare acknowledged write through libfabric, between two processes and without TRAM. It is the reference for the
 * latency of TRAM across machines (`tram-lab bench machines`).
 *
 * This process writes and spins. The target (`bare-fabric-target.ts`) spins as well, or sleeps until something arrives. A write
 * is confirmed in one of two ways: libfabric reports that it has landed, or a read that was posted after it returns.
 */
import { Block } from 'tram-multicast/internal/memory/fabric/block.js';
import {
  type Connection,
  DELIVERY_COMPLETE,
  REPORT_COMPLETION,
} from 'tram-multicast/internal/memory/fabric/connection.js';
import type { Extents } from 'tram-multicast/internal/memory/fabric/extents.js';
import { Fabric } from 'tram-multicast/internal/memory/fabric/fabric.js';
import type { FabricHandler } from 'tram-multicast/internal/memory/fabric/handler.js';
import { libfabric } from 'tram-multicast/internal/memory/fabric/libfabric.js';
import type { Registration } from 'tram-multicast/internal/memory/fabric/registration.js';
import { ForkedProcess } from '../load/forked.js';
import { STOP_AT, TARGET_BYTES, type Target } from './bare-fabric-target.js';

export interface BareFabricOptions {
  /** Of this machine. Default: the loopback. */
  readonly address?: string;
  /** Number of writes for each figure. */
  readonly writes: number;
}

/** Medians for writes of 64 B. */
export interface BareFabricFigures {
  /** One write at a time, reported as landed. */
  readonly landedUs: number;
  /** One at a time, confirmed by a read. */
  readonly confirmedUs: number;
  /** With 64 in flight, each reported as landed. */
  readonly landedPerSecond: number;
  /** Four places in one write, reported as landed. */
  readonly fourExtentsUs: number;
  /** Four places in four writes, of which the last is reported as landed. */
  readonly fourWritesUs: number;
}

export interface BareFabric {
  readonly spinning: BareFabricFigures;
  readonly waiting: BareFabricFigures;
}

const RECORD_BYTES = 64;
const OUTSTANDING = 64;
const PLACES = 4;
/** Places are a page apart, so that no two are contiguous. */
const PLACE_BYTES = 4096;
const WARM_UP_PART = 0.2;
const LIMIT_MS = 120_000;
/** A target that does not answer for so long is considered dead. */
const ANSWER_LIMIT_MS = 10_000;
const POLLS_PER_CLOCK_READ = 1024;

export async function measureBareFabric(options: BareFabricOptions): Promise<BareFabric> {
  const { address = '127.0.0.1', writes } = options;
  const script = new URL('./bare-fabric-target.js', import.meta.url);
  const process = new ForkedProcess('the target of bare writes', script);
  const writer = new Writer(address);
  try {
    const target = await process.ask<Target>('open', address, LIMIT_MS);
    const measure = async (spins: boolean): Promise<BareFabricFigures> => {
      const served = process.ask('serve', spins, LIMIT_MS);
      const figures = writer.measure(target, writes);
      await served;
      return figures;
    };
    return { spinning: await measure(true), waiting: await measure(false) };
  } finally {
    writer.close();
    await process.end();
  }
}

class Writer implements FabricHandler {
  private readonly fabric: Fabric;
  private readonly memory: Block;
  private readonly registration: Registration;
  private readonly record: Extents;
  private readonly records: Extents;
  private readonly places: readonly Extents[];
  private readonly check: Extents;
  private readonly stop: Extents;
  private connection: Connection | undefined;
  private isConnected = false;
  private done = 0;

  constructor(private readonly address: string) {
    this.fabric = Fabric.open({ address });
    this.memory = new Block(libfabric().koffi, TARGET_BYTES);
    this.registration = this.fabric.register(this.memory.address, TARGET_BYTES, 'local');
    this.record = this.fabric.createExtents();
    this.records = this.fabric.createExtents();
    this.places = Array.from({ length: PLACES }, () => this.fabric.createExtents());
    this.check = this.fabric.createExtents();
    this.stop = this.fabric.createExtents();
  }

  measure(target: Target, writes: number): BareFabricFigures {
    const connection = this.connect(target);
    this.fill(target);
    const { record, records, places, check } = this;
    const median = (post: () => void): number => this.median(writes, post);
    const figures = {
      landedUs: median(() => this.write(connection, record, REPORT_COMPLETION | DELIVERY_COMPLETE)),
      confirmedUs: median(() => {
        this.write(connection, record, 0);
        this.read(connection, check, REPORT_COMPLETION);
      }),
      landedPerSecond: this.stream(connection, writes),
      fourExtentsUs: median(() =>
        this.write(connection, records, REPORT_COMPLETION | DELIVERY_COMPLETE),
      ),
      fourWritesUs: median(() => {
        for (let i = 0; i < PLACES - 1; i++) this.write(connection, places[i], 0);
        this.write(connection, places[PLACES - 1], REPORT_COMPLETION | DELIVERY_COMPLETE);
      }),
    };
    this.memory.setWord(STOP_AT, 1);
    this.write(connection, this.stop, REPORT_COMPLETION | DELIVERY_COMPLETE);
    this.awaitDone(1);
    connection.close();
    return figures;
  }

  close(): void {
    this.fabric.close();
  }

  completed(): void {
    this.done++;
  }

  connected(): void {
    this.isConnected = true;
  }

  refused(_connection: Connection, _data: Uint8Array, reason: string): void {
    throw new Error(`the target of bare writes can't be reached: ${reason}`);
  }

  closed(): void {
    throw new Error('the target of bare writes has ended');
  }

  failed(_connection: Connection, reason: string): void {
    throw new Error(`a bare write failed: ${reason}`);
  }

  requested(): void {}

  private connect({ port }: Target): Connection {
    this.isConnected = false;
    this.connection = this.fabric.connect(this.address, port, new Uint8Array(0));
    this.pollUntil(() => this.isConnected);
    return this.connection;
  }

  private fill({ region }: Target): void {
    const { registration } = this;
    for (const extents of [this.record, this.records, this.check, this.stop, ...this.places]) {
      extents.clear();
    }
    const at = (place: number): number => (1 + place) * PLACE_BYTES;
    this.record.add(registration, at(0), region, at(0), RECORD_BYTES);
    this.check.add(registration, at(PLACES), region, at(PLACES), 8);
    this.stop.add(registration, STOP_AT, region, STOP_AT, 4);
    this.places.forEach((extents, i) => {
      extents.add(registration, at(i), region, at(i), RECORD_BYTES);
      this.records.add(registration, at(i), region, at(i), RECORD_BYTES);
    });
  }

  /** The median duration of rounds with one reported completion each. */
  private median(rounds: number, post: () => void): number {
    const timesUs = new Float64Array(rounds);
    for (let i = -Math.floor(rounds * WARM_UP_PART); i < rounds; i++) {
      const startMs = performance.now();
      post();
      this.awaitDone(1);
      if (i >= 0) timesUs[i] = (performance.now() - startMs) * 1000;
    }
    return timesUs.sort()[rounds >> 1];
  }

  private stream(connection: Connection, writes: number): number {
    this.done = 0;
    const startMs = performance.now();
    for (let posted = 0; posted < writes; posted++) {
      this.pollUntil(() => posted - this.done < OUTSTANDING);
      this.write(connection, this.record, REPORT_COMPLETION | DELIVERY_COMPLETE);
    }
    this.pollUntil(() => this.done === writes);
    const perSecond = (writes * 1000) / (performance.now() - startMs);
    this.done = 0;
    return perSecond;
  }

  private write(connection: Connection, extents: Extents, flags: number): void {
    while (!connection.write(extents, flags, 0)) this.fabric.poll(this);
  }

  private read(connection: Connection, extents: Extents, flags: number): void {
    while (!connection.read(extents, flags, 0)) this.fabric.poll(this);
  }

  private awaitDone(count: number): void {
    this.pollUntil(() => this.done >= count);
    this.done = 0;
  }

  private pollUntil(isDone: () => boolean): void {
    const deadlineMs = performance.now() + ANSWER_LIMIT_MS;
    for (let polls = 1; !isDone(); polls++) {
      this.fabric.poll(this);
      if (polls % POLLS_PER_CLOCK_READ === 0 && performance.now() > deadlineMs) {
        throw new Error(`the target of bare writes has not answered for ${ANSWER_LIMIT_MS} ms`);
      }
    }
  }
}

/** Two fabrics of this thread that talk to each other over the loopback, for tests. */
import { Block } from '../../../src/memory/fabric/block.js';
import type { Connection } from '../../../src/memory/fabric/connection.js';
import { Fabric } from '../../../src/memory/fabric/fabric.js';
import type { FabricHandler } from '../../../src/memory/fabric/handler.js';
import { libfabric } from '../../../src/memory/fabric/libfabric.js';
import type { Access, Registration } from '../../../src/memory/fabric/registration.js';
import type { Request } from '../../../src/memory/fabric/request.js';

export const LOOPBACK = '127.0.0.1';
export const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
export const NOTHING = bytesOf('');

/** Writes down all that it hears. */
export class Witness implements FabricHandler {
  readonly heard: string[] = [];
  /** In the order of their requests. */
  readonly accepted: Connection[] = [];

  /** @param onRequest  accepts or rejects; without, all are accepted */
  constructor(
    private readonly onRequest = (request: Request): Connection | undefined =>
      request.accept(NOTHING),
  ) {}

  completed(_: Connection, context: number): void {
    this.heard.push(`completed ${context}`);
  }
  connected(_: Connection, data: Uint8Array): void {
    this.heard.push(`connected ${text(data)}`.trim());
  }
  refused(_: Connection, data: Uint8Array): void {
    this.heard.push(`refused ${text(data)}`.trim());
  }
  closed(): void {
    this.heard.push('closed');
  }
  failed(): void {
    this.heard.push('failed');
  }
  requested(request: Request): void {
    this.heard.push(`requested ${text(request.data)}`.trim());
    const connection = this.onRequest(request);
    if (connection !== undefined) this.accepted.push(connection);
  }
}

export class Pair {
  readonly client = Fabric.open({ address: LOOPBACK });
  readonly server = Fabric.open({ address: LOOPBACK });
  readonly port = this.server.listen(0);
  readonly clientWitness = new Witness();
  readonly serverWitness: Witness;

  constructor(onRequest?: (request: Request) => Connection | undefined) {
    this.serverWitness = new Witness(onRequest);
  }

  connect(data = NOTHING): Connection {
    return this.client.connect(LOOPBACK, this.port, data);
  }

  /** A connection that both sides can use. */
  connectFully(): Connection {
    const { accepted } = this.serverWitness;
    const count = accepted.length;
    const connection = this.connect();
    this.pollUntil(() => connection.state === 'open' && accepted[count]?.state === 'open');
    return connection;
  }

  pollUntil(isDone: () => boolean): void {
    const giveUpAtMs = performance.now() + 30_000;
    while (!isDone()) {
      this.client.poll(this.clientWitness);
      this.server.poll(this.serverWitness);
      if (performance.now() > giveUpAtMs) {
        const { heard } = this.clientWitness;
        throw new Error(
          `waited in vain; ${heard.join(', ')}; ${this.serverWitness.heard.join(', ')}`,
        );
      }
    }
  }

  pollFor(polls: number): void {
    for (let i = 0; i < polls; i++) {
      this.client.poll(this.clientWitness);
      this.server.poll(this.serverWitness);
    }
  }

  close(): void {
    this.client.close();
    this.server.close();
  }
}

export interface Memory {
  readonly bytes: Uint8Array;
  readonly registration: Registration;
}

export function memoryOf(fabric: Fabric, bytes: number, access: Access): Memory {
  const block = new Block(libfabric().koffi, bytes);
  return { bytes: block.bytes, registration: fabric.register(block.address, bytes, access) };
}

function text(data: Uint8Array): string {
  return new TextDecoder().decode(data);
}

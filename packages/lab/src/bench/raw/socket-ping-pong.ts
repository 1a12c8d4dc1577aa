/**
 * The round trip of a message between two processes through Node's own sockets, the alternative to libfabric. `tram-lab bench
 * machines` prints it beside TRAM's latency.
 */
import { connect } from 'node:net';
import { Histogram } from 'tram-multicast/internal/hosting/histogram.js';
import { ForkedProcess } from '../load/forked.js';
import { type Latencies, latenciesIn } from '../systems/system.js';

export interface SocketPingPongOptions {
  readonly bytes: number;
  readonly seconds: number;
}

const LOOPBACK = '127.0.0.1';
const WARM_UP_PART = 0.2;
const LIMIT_MS = 10_000;

export async function measureSocketPingPong(options: SocketPingPongOptions): Promise<Latencies> {
  const script = new URL('./socket-pong.js', import.meta.url);
  const process = new ForkedProcess('the other side of the ping-pong', script);
  try {
    const port = await process.ask<number>('listen', LOOPBACK, LIMIT_MS);
    return await Promise.race([play(port, options), process.death]);
  } finally {
    await process.end();
  }
}

/** One message at a time. */
function play(port: number, { bytes, seconds }: SocketPingPongOptions): Promise<Latencies> {
  const ball = new Uint8Array(bytes);
  const latency = Histogram.empty();
  const startMs = performance.now();
  const recordFromMs = startMs + WARM_UP_PART * seconds * 1000;
  const untilMs = recordFromMs + seconds * 1000;
  let servedMs = 0;
  let missing = 0;
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: LOOPBACK, noDelay: true });
    const serve = (): void => {
      missing = bytes;
      servedMs = performance.now();
      socket.write(ball);
    };
    socket.once('connect', serve);
    socket.on('data', ({ length }) => {
      missing -= length;
      if (missing > 0) return;
      const nowMs = performance.now();
      if (servedMs >= recordFromMs) latency.record((nowMs - servedMs) * 1e6);
      if (nowMs < untilMs) return serve();
      socket.destroy();
      resolve(latenciesIn(latency));
    });
    socket.once('error', reject);
  });
}

/** How a counterpart that is a host of its own reaches the others: its network, polled as a host polls it. */

import { nowUs } from 'tram-multicast/internal/hosting/clock.js';
import { CALLER } from 'tram-multicast/internal/memory/machines/handshake.js';
import { Network } from 'tram-multicast/internal/memory/machines/network.js';

/** How long others may take to take what was posted: for ever, on a machine that is merely busy. */
const SETTLE_US = 20e6;
/** If one of them is stopped. */
const HELD_UP_US = 200_000;
const MEET_US = 30e6;
/** How long messages from the suite may wait. */
const SLEEP_US = 500;

/** Everything that may be under way at a time, with room to spare. */
const BUFFER_WORDS = { out: 1 << 20, in: 1 << 18, flags: 16 };

const FLUSHES_PER_WAIT = 4;

/** Where memory is shared there is nothing to do. */
export const NO_WIRE = {
  network: undefined,
  poll() {},
  flush() {},
  settle() {},
  async meet() {},
  serve() {},
};

export function openWire({ addresses, patienceUs, id }, map, arena) {
  const number = map.hostOf(id);
  const network = new Network({
    map,
    arena,
    self: { caller: CALLER.host, number },
    address: addresses[number].host,
    port: addresses[number].port,
    hosts: addresses,
    secret: new Uint8Array(32).fill(7),
    digest: new Uint8Array(8).fill(1),
    patienceUs,
    bufferWords: () => BUFFER_WORDS,
    log: process.env.CONTRACT_LOG
      ? (_level, text) => console.error(`${Math.round(nowUs() / 1000)} host ${number}: ${text}`)
      : () => undefined,
    nowUs,
  });
  let flushes = 0;
  const answer = new Int32Array(1);
  const turn = () => {
    network.poll(nowUs());
    network.flush(nowUs(), 0);
  };

  return {
    network,
    poll: () => network.poll(nowUs()),
    // Who races does not wait for company; now and then it does, and no promise may depend on it.
    flush: () => network.flush(nowUs(), ++flushes % FLUSHES_PER_WAIT === 0 ? undefined : 0),

    /**
     * Until all that was posted has landed, so that a scene can look, and nothing old lands in its next act.
     *
     * A link is also settled while writes that nobody is told of are on their way. A read behind them completes after
     * they have landed. A host that is stopped answers no read, so then we do not ask.
     */
    settle(isHeldUp) {
      if (!isHeldUp)
        for (const link of network.links) link?.readWords(map.host(number), answer, 0, 1);
      const untilUs = nowUs() + (isHeldUp ? HELD_UP_US : SETTLE_US);
      do {
        turn();
        if (network.isSettled) return;
        network.wait(SLEEP_US);
      } while (nowUs() < untilUs);
      if (!isHeldUp) throw new Error(`what host ${number} has posted does not land`);
    },

    /** Until we are connected to these hosts, and they to us. */
    async meet(hosts) {
      const untilUs = nowUs() + MEET_US;
      while (!hosts.every((host) => network.isConnected(host)) || !network.isSettled) {
        if (nowUs() > untilUs) throw new Error(`${hosts} did not meet host ${number}`);
        turn();
        network.wait(SLEEP_US);
      }
    },

    /** Between jobs: nothing lands unless its target polls. */
    serve() {
      const again = () => {
        turn();
        network.wait(SLEEP_US);
        setImmediate(again);
      };
      again();
    },
  };
}

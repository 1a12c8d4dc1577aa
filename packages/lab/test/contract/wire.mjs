/** The network of a counterpart that is a host of its own, polled as a host polls it. Called by `counterpart.mjs`. */

import { nowUs } from 'tram-multicast/internal/hosting/clock.js';
import { CALLER } from 'tram-multicast/internal/memory/machines/handshake.js';
import { Network } from 'tram-multicast/internal/memory/machines/network.js';
import { openArenaFile } from 'tram-multicast/internal/memory/processes/arena-file.js';

/** Time limit for `settle`: long enough for a busy machine. */
const SETTLE_US = 20e6;
/** Time limit for `settle` while a peer is stopped. */
const HELD_UP_US = 200_000;
const MEET_US = 30e6;
/** The longest delay of messages from the suite. */
const SLEEP_US = 500;

/** More than is ever in flight. */
const BUFFER_WORDS = { out: 1 << 20, in: 1 << 18, flags: 16 };

const FLUSHES_PER_WAIT = 4;

/** For shared memory, which needs no network. */
export const NO_WIRE = {
  network: undefined,
  poll() {},
  flush() {},
  settle() {},
  async meet() {},
  serve() {},
};

export function openWire({ addresses, patienceUs, id, paths, areOnOneMachine }, map, arena) {
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
    ...(areOnOneMachine && { mapArenaOf: (host) => openArenaFile(paths[host]) }),
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
    // Most flushes are urgent; one in four is batched, and no promise may depend on that.
    flush: () => network.flush(nowUs(), ++flushes % FLUSHES_PER_WAIT === 0 ? undefined : 0),

    /**
     * Waits until everything that was posted has landed, so that a scene can check it, and no old write lands later.
     *
     * A link also counts as settled while fire-and-forget writes are in flight. A read that is posted after them completes
     * after they have landed. A stopped host answers no read, so none is posted then.
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
      if (!isHeldUp) throw new Error(`the writes of host ${number} did not land in time`);
    },

    /** Waits until this host and the given hosts are connected to each other. */
    async meet(hosts) {
      const untilUs = nowUs() + MEET_US;
      while (!hosts.every((host) => network.isConnected(host)) || !network.isSettled) {
        if (nowUs() > untilUs) throw new Error(`${hosts} did not meet host ${number}`);
        turn();
        network.wait(SLEEP_US);
      }
    },

    /** Polls between jobs: writes land only if their target polls. */
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

/**
 * A client of a chaos or soak run, in a process of its own: `node client.mjs ADDRESS SETTINGS`. Started by `clients.mjs`.
 *
 * It runs its load (`load.mjs`) until its parent tells it to stop, and reports totals. With `fingerprints` it only waits until
 * no message waits any more, and asks every replica to write a fingerprint of its state.
 */
import { Client } from 'tram-multicast';
import { endWithParent } from '../dist/bench/load/end-with-parent.js';
import { Load } from './load.mjs';

const CONNECT_MS = 60_000;
const RETRY_MS = 200;
const TRANSIENT = new Set(['TRAM_UNREACHABLE', 'TRAM_NO_CLIENT_SLOT']);

/** @type {import('./load.mjs').ClientSettings} */
const settings = JSON.parse(process.argv[3]);
const client = await connect(process.argv[2]);
const load = new Load(client, settings);
process.on('message', () => load.stop());
endWithParent();
const audit = settings.auditsFirst ? await load.audit() : undefined;
process.send?.({ what: 'connected', name: client.name, audit });

if (settings.fingerprints === undefined) await load.run();
else await load.takeFingerprints(settings.fingerprints);
await client.close();
process.send?.({ what: 'done', ...load.totals }, () => undefined);

/**
 * Retries: a cluster across machines may be unreachable for a while, and a host that lost its memory grants no slots for
 * ten seconds. @param {string} address
 */
async function connect(address) {
  const deadlineMs = Date.now() + CONNECT_MS;
  for (;;) {
    try {
      return await Client.connect(address);
    } catch (error) {
      const isTransient = TRANSIENT.has(/** @type {any} */ (error)?.code);
      if (!isTransient || Date.now() > deadlineMs) throw error;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

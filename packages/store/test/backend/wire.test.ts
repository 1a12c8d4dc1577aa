import { Cluster } from 'tram-multicast';
import { test } from 'vitest';
import { TramWire } from '../../src/backend/wire.js';

const SERVICE = new URL('../../../../examples/counter/service.js', import.meta.url);
const ADD_ONE = Buffer.of(1);

test('messages for which there is no room are sent later, also if all others are answered at once', async () => {
  await using cluster = await Cluster.start({ groups: 1, hosts: 1, callsMax: 1, service: SERVICE });
  const wire = await TramWire.connect((options) => cluster.connect(options));
  const answers = Array.from(
    { length: 5 },
    () =>
      new Promise<void>((resolve, reject) => {
        const sent = { replied: () => undefined, answered: resolve, failed: reject };
        wire.multicast([0], ADD_ONE, sent);
      }),
  );
  await Promise.all(answers);
  await wire.close();
});

test('a message may be sent while the last answer is being told', async () => {
  await using cluster = await Cluster.start({ groups: 1, hosts: 1, callsMax: 1, service: SERVICE });
  const wire = await TramWire.connect((options) => cluster.connect(options));
  await new Promise<void>((resolve, reject) => {
    const second = { replied: () => undefined, answered: resolve, failed: reject };
    const first = {
      replied: () => undefined,
      answered: () => wire.multicast([0], ADD_ONE, second),
      failed: reject,
    };
    wire.multicast([0], ADD_ONE, first);
  });
  await wire.close();
});

/** A network of TCP connections, within this process. */
import { afterEach, describe, expect, test } from 'vitest';
import { Message } from '../../../src/baselines/passing/message.js';
import { TcpNetwork } from '../../../src/baselines/tcp/tcp-network.js';

describe('connections', () => {
  const open: TcpNetwork[] = [];
  const networkOf = (first: number, count: number): TcpNetwork => {
    const network = new TcpNetwork(first, count);
    open.push(network);
    return network;
  };
  afterEach(() => {
    for (const network of open.splice(0)) network.close();
  });

  test('carry any amount in both directions, in order', async () => {
    const [one, many] = [networkOf(0, 1), networkOf(1, 5)];
    const payload = new Int32Array(5000);
    const count = 2000;
    const message = Object.assign(new Message(), { payload, payloadBytes: 4 * payload.length });
    const receivedBy = (network: TcpNetwork, from: number) =>
      new Promise<void>((resolve) => {
        let next = 0;
        network.attach({
          receive: (sender, { number, payload, payloadAt }) => {
            expect([sender, number, payload[payloadAt]]).toEqual([from, next, next]);
            if (++next === count) resolve();
          },
        });
      });
    const received = [receivedBy(one, 1), receivedBy(many, 0)];
    await many.connect(0, await one.listen());
    for (let number = 0; number < count; number++) {
      payload.fill(number);
      many.send(0, message.about(0, 0, number));
      one.send(1 + (number % 5), message);
    }
    await Promise.all(received);
  });

  test('report an address that refuses them', async () => {
    const gone = networkOf(0, 1);
    const port = await gone.listen();
    gone.close();
    await expect(networkOf(1, 1).connect(0, port)).rejects.toThrow(
      `can't connect to 0 at port ${port}: connect ECONNREFUSED`,
    );
  });

  test('are required before sending', () => {
    expect(() => networkOf(0, 1).send(1, new Message())).toThrow('no connection to 1');
  });
});

/** A service fails at every member alike. The group continues, and the client gets the failure as reply. */

import { InvariantError } from 'tram-multicast/internal/protocol/assert.js';
import type { ReplyOutcome } from 'tram-multicast/internal/protocol/data-path/client.js';
import type { Application } from 'tram-multicast/internal/protocol/edges.js';
import { expect, test } from 'vitest';
import type { ReplicaHost } from '../../src/sim/hosts.js';
import { ServiceFailure } from '../../src/sim/service.js';
import { Stage } from '../../src/sim/stage.js';
import { attack } from './attack.js';

/** Collects the replies to client 0 from now on, as `group outcome`, and what the service threw. */
function listen(stage: Stage): string[] {
  const told: string[] = [];
  const { workload } = stage.world.clients[0];
  const replied = workload.replied.bind(workload);
  workload.replied = (call, group, reply: Uint8Array, outcome: ReplyOutcome) => {
    const thrown = outcome === 'failed' ? ` ${new TextDecoder().decode(reply)}` : '';
    told.push(`${group} ${outcome}${thrown}`);
    expect(reply.length > 0).toBe(outcome !== 'tooLarge');
    replied(call, group, reply, outcome);
  };
  return told;
}

const applicationOf = (host: ReplicaHost): Application => host.service;

test('a failure is a reply like any other, at every destination and every member', () => {
  const stage = new Stage('groups=2 tree=-1,0 replicas=3 clients=1', { serviceFailsEvery: 3 });
  const { world } = stage;
  const told = listen(stage);
  // The session is 1: numbers 2, 5, … fail.
  for (let number = 0; number < 4; number++) stage.send(0, [0, 1], `m${number}`);
  stage.settle();
  const outcomes = (group: number) => told.filter((one) => one.startsWith(`${group} `));
  for (const group of [0, 1]) {
    expect(outcomes(group)).toEqual(
      ['ok', 'ok', `failed g${group} ≠ ü𝄞2`, 'ok'].map((outcome) => `${group} ${outcome}`),
    );
  }
  expect(world.replicas.map(({ replica }) => replica.member.deliveries)).toEqual([
    4, 4, 4, 4, 4, 4,
  ]);
  expect(world.tally.transitions.get('service failed')).toBe(6);
});

test('an error whose message is no text is a failure like any other', () => {
  const stage = new Stage('replicas=3 clients=1', { serviceFailsEvery: 1 });
  const told = listen(stage);
  for (const { service } of stage.group(0)) {
    const deliver = service.deliver.bind(service);
    service.deliver = (delivery, replier) => {
      try {
        return deliver(delivery, replier);
      } catch (error) {
        const { message } = error as Error;
        throw Object.assign(error as Error, { message: [message] });
      }
    };
  }
  stage.send(0, [0], 'm');
  stage.settle();
  expect(told).toEqual(['0 failed g0 ≠ ü𝄞0']);
});

test('a failure is distinct from a reply that is too large', () => {
  const stage = new Stage('replicas=1 clients=1', {
    serviceFailsEvery: 2,
    sizes: { replyBytesMax: 4 },
  });
  const told = listen(stage);
  stage.send(0, [0], 'even');
  stage.send(0, [0], 'odd');
  stage.settle();
  // Of the text of the failure, as many whole characters as fit into four bytes.
  expect(told).toEqual(['0 tooLarge', '0 failed g0 ']);
});

test('the next leader sends the failure again if the reply of the first one did not arrive', () => {
  const stage = new Stage('replicas=3 clients=1', { serviceFailsEvery: 1 });
  const { world } = stage;
  const [A, B] = stage.group(0);
  const told = listen(stage);
  stage.hold(A, world.clients[0]);
  stage.send(0, [0], 'm');
  stage.until(() => B.replica.member.deliveries === 1);
  expect(told).toEqual([]);
  stage.crashUnheard(A);
  stage.settle();
  expect(told).toEqual(['0 failed g0 ≠ ü𝄞0']);
});

test('a violated invariant is not a failure of the service: the replica stops', () => {
  const stage = new Stage('replicas=3 clients=1');
  const [A] = stage.group(0);
  applicationOf(A).deliver = () => {
    throw new InvariantError('delivery never goes back');
  };
  stage.send(0, [0], 'm');
  expect(() => stage.settle()).toThrow('delivery never goes back');
});

attack(
  'a service that changes the payload of a message changes nothing that others get',
  { 'payload-in-place': /payload|where another replica/ },
  ({ Stage }) => {
    // A quick step delivers what one of the members gets only later.
    const timing = { heartbeatUs: 500, restUs: 500, quickUs: 500, suspectAfterUs: 5000 };
    const stage = new Stage('replicas=3 clients=1', { memory: 'shared', timing });
    for (const host of stage.group(0)) {
      const service = applicationOf(host);
      const deliver = service.deliver.bind(service);
      service.deliver = (message, replier) => {
        const reply = deliver(message, replier);
        message.payload.fill(0);
        return reply;
      };
    }
    for (let i = 0; i < 20; i++) {
      stage.send(0, [0], `m${i}`);
      stage.runFor(20);
    }
    stage.settle();
  },
);

attack(
  'a member that fails to take a snapshot goes on, and the fetcher asks another',
  { 'snapshot-failure-stops': /disk full/ },
  ({ Stage }) => {
    const stage = new Stage('replicas=3 clients=1 rings=1024');
    const [A, B, C] = stage.group(0);
    stage.world.crash(C);
    for (let i = 0; i < 14; i++) stage.send(0, [0], `m${i}`);
    stage.runFor(3000);
    let failures = 0;
    const failing = [A, B].map((host) => {
      const service = applicationOf(host);
      const snapshot = service.snapshot.bind(service);
      service.snapshot = () => {
        failures++;
        throw new ServiceFailure('disk full');
      };
      return () => {
        service.snapshot = snapshot;
      };
    });
    stage.restart(C);
    // C asks one after the other, in vain, and both go on.
    stage.until(() => failures >= 4);
    stage.send(0, [0], 'meanwhile');
    stage.until(() => A.replica.member.deliveries === 15 && B.replica.member.deliveries === 15);
    expect(C.replica.member.deliveries).toBe(0);
    failing[1]();
    stage.settle();
    expect(C.replica.member.deliveries).toBe(15);
  },
);

test('a snapshot that is too large to be transferred is a failure', () => {
  const stage = new Stage('replicas=3 clients=1 rings=1024');
  const [A, B, C] = stage.group(0);
  stage.world.crash(C);
  for (let i = 0; i < 14; i++) stage.send(0, [0], `m${i}`);
  stage.runFor(3000);
  for (const host of [A, B]) {
    applicationOf(host).snapshot = () => [{ length: 2 ** 31 } as Uint8Array];
  }
  stage.restart(C);
  expect(() => stage.settle()).toThrow(/a snapshot has at most 2147483644 bytes/);
});

test('a member whose service fails to restore a snapshot stops', () => {
  const stage = new Stage('replicas=3 clients=1 rings=1024');
  const [, , C] = stage.group(0);
  stage.world.crash(C);
  for (let i = 0; i < 14; i++) stage.send(0, [0], `m${i}`);
  stage.runFor(3000);
  stage.restart(C);
  applicationOf(C).restore = () => {
    throw new ServiceFailure('unknown format');
  };
  expect(() => stage.settle()).toThrow('unknown format');
});

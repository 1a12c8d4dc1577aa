import { expect, test } from 'vitest';
import { type Mail, readMail } from '../../src/messages/mail.js';
import { Mailboxes } from '../../src/shard/mailboxes.js';

const OVERDUE = { type: 'overdue', transaction: 't', groups: [1, 2] } as const;

class Box {
  readonly boxes = new Mailboxes((id, content) => this.replies.set(id, readMail(content)));
  readonly replies = new Map<string, Mail | undefined>();
  #last = 0;

  /** @returns what `listen` replies, or the id of the message that waits */
  listen(acknowledged: number, nowMs = 0): Mail | undefined | string {
    const id = `m${++this.#last}`;
    const reply = this.boxes.listen('gateway', acknowledged, nowMs, () => id);
    return reply === undefined ? id : readMail(reply);
  }
}

test('a gateway gets each notice again until it has acknowledged it', () => {
  const box = new Box();
  const begun = box.listen(0) as Mail;
  expect(begun.notices).toEqual([]);
  const id = box.listen(begun.upTo) as string;
  box.boxes.post('gateway', OVERDUE, 1);
  const { upTo, notices } = box.replies.get(id)!;
  expect(notices).toEqual([OVERDUE]);
  // The reply was lost.
  expect((box.listen(begun.upTo) as Mail).notices).toEqual([OVERDUE]);
  expect(box.listen(upTo)).toBeTypeOf('string');
});

test('a gateway that was forgotten is told so, although it has never had a notice', () => {
  const box = new Box();
  const { upTo } = box.listen(0) as Mail;
  expect(box.boxes.dropSilent(9_000)).toEqual([]);
  expect(box.boxes.dropSilent(11_000)).toEqual(['gateway']);
  expect(box.listen(upTo, 12_000)).toBeUndefined();
  expect((box.listen(0, 12_000) as Mail).notices).toEqual([]);
});

test('a gateway that leaves more than 32 MiB is forgotten, whatever it does then', () => {
  const box = new Box();
  const { upTo } = box.listen(0) as Mail;
  const published = { type: 'published', isSharded: false, channel: 'c' } as const;
  const megabyte = 'x'.repeat(1024 * 1024);
  for (let i = 0; i < 31; i++) box.boxes.post('gateway', { ...published, message: megabyte }, 1);
  expect(box.boxes.dropSilent(1)).toEqual([]);
  box.boxes.post('gateway', { ...published, message: megabyte }, 1);
  expect(box.boxes.dropSilent(1)).toEqual(['gateway']);
  expect(box.listen(upTo, 2)).toBeUndefined();
});

test('a gateway whose message waits is not forgotten, until the message is abandoned', () => {
  const box = new Box();
  const { upTo } = box.listen(0) as Mail;
  const id = box.listen(upTo) as string;
  expect(box.boxes.dropSilent(60_000)).toEqual([]);
  box.boxes.abandoned(id);
  expect(box.boxes.dropSilent(60_000)).toEqual(['gateway']);
});

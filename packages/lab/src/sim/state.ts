/**
 * A digest of everything that a snapshot of a member carries: how far it has delivered, its counters, ordered time, the
 * replies that it keeps and their indices, what went to each child last, and the state of its service. All members have
 * the same digest at the same index. Called by `world.ts`.
 */
import { FRAME_WORDS, HEAD_WORDS } from 'tram-multicast/internal/memory/record.js';
import type { Counters } from 'tram-multicast/internal/protocol/data-path/counters.js';
import type { Member } from 'tram-multicast/internal/protocol/member.js';
import { mix, mixText, type Service } from './service.js';

export function digestOf(member: Member, service: Service): number {
  let hash = mix(mix(mix(0, member.nextPosition), member.deliveries), member.relayed);
  hash = digestCounters(member.delivered, hash);
  hash = digestReplies(member, hash);
  for (let i = 0; i < service.state.length; i++) hash = mix(hash, service.state[i]);
  for (const id of service.waiting) hash = mixText(hash, id);
  for (const session of member.waiting.firstLive) hash = mix(hash, session);
  for (const index of member.sentTo) hash = mix(hash, index);
  return hash;
}

function digestCounters(counters: Counters, hash: number): number {
  for (let client = 0; client < counters.session.length; client++) {
    hash = mix(hash, counters.session[client]);
    hash = mix(hash, counters.nextNumber[client]);
    hash = mix(hash, counters.nextPosition[client]);
  }
  hash = mix(hash, counters.nextFromParent);
  return mix(hash, counters.orderedUs);
}

/** Checksums and last words are left out: only a member that sends a reply seals its record. */
function digestReplies({ replies, layout }: Member, hash: number): number {
  const { words } = replies;
  for (let at = 0; at < words.length; at += layout.replySlotWords) {
    const bodyWords = Math.max(0, words[at] - FRAME_WORDS);
    for (let i = 0; i < HEAD_WORDS - 1; i++) hash = mix(hash, words[at + i]);
    for (let i = 0; i < bodyWords; i++) hash = mix(hash, words[at + HEAD_WORDS + i]);
  }
  for (const word of replies.indexWords) hash = mix(hash, word);
  return hash;
}

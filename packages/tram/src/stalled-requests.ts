/**
 * What a client does about calls that take long: once a second it fails those that can never be answered, and tells of the
 * others on the channel `tram:stalled`.
 *
 * A message that was sent keeps its *place*, one of `callsMax`, until all its groups have replied, also after its call has
 * failed. So messages to a group that can't go on may leave no room for messages to other groups.
 */
import type { ClusterContext } from './hosting/cluster-context.js';
import { groupsOf } from './hosting/service.js';
import {
  groupNames,
  STALLED_US,
  type Stall,
  type StallMessage,
  StallWatch,
  stalls,
} from './hosting/stall.js';
import { describeStateLoss } from './hosting/status.js';
import type { Request } from './multicast-request.js';

const OTHER_CLIENT =
  'A message keeps its place until all its groups have replied, also after its call has failed. Destroy this client and ' +
  'connect a new one, or use one client for each set of groups that may fail apart.';

const MORE_PLACES =
  'Use another client for calls that may wait for long, or start the cluster with a larger `callsMax`.';

/** @internal */
export class StalledRequests {
  private readonly groups: StallWatch;

  constructor(
    private readonly context: ClusterContext,
    private readonly client: string,
    private readonly onStalled: (message: StallMessage) => void,
  ) {
    this.groups = new StallWatch(context);
  }

  /**
   * To be called once a second.
   * @param sent  those whose message was sent and is unanswered, also if their call has failed
   * @param waiting  those that wait for room. Those that fail are removed.
   */
  watch(sent: readonly Request[], waiting: Request[], nowUs: number): void {
    const isStalled = ({ isSettled, sinceUs }: Request): boolean =>
      !isSettled && sinceUs <= nowUs - STALLED_US;
    for (const alike of alikeOf(sent.filter(isStalled))) {
      const stall = this.stallOf(alike[0]);
      if (failIfLost(alike, stall)) continue;
      // A deferred reply takes its time. That is no stall, unless its group can't go on.
      const isExpected = alike.every(({ isDeferred }) => isDeferred);
      if (!isExpected || stall.stalledGroups.length > 0) this.tell(alike[0], stall);
    }
    for (const alike of alikeOf(waiting.filter(isStalled))) {
      if (failIfLost(alike, this.stallOf(alike[0]))) continue;
      const stall = this.roomStall(sent);
      // Others wait for the first one, and may have room without it.
      const isStuck = alike[0] === waiting[0] && stall.lostGroups.length > 0;
      if (!isStuck) this.tell(alike[0], stall);
      else for (const request of alike) request.giveUpLost(stall.reason, stall.hint);
    }
    for (let at = waiting.length - 1; at >= 0; at--) {
      if (waiting[at].isSettled) waiting.splice(at, 1);
    }
  }

  private tell({ low, high, missing }: Request, { stalledGroups, reason }: Stall): void {
    const message: StallMessage = {
      client: this.client,
      destinations: groupsOf(low, high),
      missingGroups: groupsOf(missing.pendingLow, missing.pendingHigh),
      stalledGroups,
      reason,
    };
    stalls.publish(message);
    this.onStalled(message);
  }

  /** Why the groups of a request do not reply. */
  stallOf({ missing }: Request): Stall {
    return this.groups.stallOf([missing]);
  }

  /** Why there is no room for a message. `lostGroups` are given only if nothing that was sent will be answered. */
  roomStall(sent: readonly Request[]): Stall {
    const holders = alikeOf(sent).map(([first]) => first);
    const stall = this.groups.stallOf(holders.map(({ missing }) => missing));
    const { callsMax } = this.context.layout.sizes;
    const willHaveRoom = holders.some((holder) => this.stallOf(holder).lostGroups.length === 0);
    const names = groupNames(holders.map(({ missing }) => missing));
    const places = `${sent.length} of ${callsMax} places are held by messages to ${names}`;
    const { stalledGroups } = stall;
    const lostGroups = willHaveRoom ? [] : stall.lostGroups;
    const deferred = sent.filter(({ isDeferred }) => isDeferred).length;
    if (stalledGroups.length === 0 && deferred > 0) {
      const reason = `${deferred} of ${callsMax} places are held by messages whose replies are deferred`;
      return { stalledGroups, lostGroups, reason, hint: MORE_PLACES };
    }
    if (stall.reason === '') return { ...stall, lostGroups };
    const reason = `${places}. ${stall.reason}`;
    return { stalledGroups, lostGroups, reason, hint: OTHER_CLIENT };
  }
}

function failIfLost(alike: readonly Request[], { lostGroups }: Stall): boolean {
  if (lostGroups.length === 0) return false;
  for (const request of alike) request.giveUpLost(describeStateLoss(lostGroups));
  return true;
}

/** In sets that wait for the same groups. */
function alikeOf(requests: readonly Request[]): Request[][] {
  const sets = new Map<string, Request[]>();
  for (const request of requests) {
    const { pendingLow, pendingHigh } = request.missing;
    const key = `${pendingLow},${pendingHigh}`;
    const alike = sets.get(key);
    if (alike === undefined) sets.set(key, [request]);
    else alike.push(request);
  }
  return [...sets.values()];
}

/** Which options that a user gives differ from those of a cluster that exists. */
import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { Overlay, parseTree } from '../protocol/overlay.js';
import type { ClusterConfig } from './config.js';
import { type ClusterOptions, OPTION_NAMES, type OptionName } from './options.js';
import { placementOf } from './placement.js';
import { serviceUrl } from './service-url.js';

/**
 * @param given  valid options for a cluster of processes; those that are left out are not compared
 * @param directory  the one that relative paths start from
 */
export function differingOptions(
  given: Partial<ClusterOptions>,
  config: ClusterConfig,
  directory: string = process.cwd(),
): OptionName[] {
  const { sizes, timing, hosts, placement, parents, service, trace } = config;
  const { order, durability, journal, snapshotBytes } = config;
  const { groups, replicas } = sizes;
  const present: Partial<Record<OptionName, unknown>> = {
    ...sizes,
    hosts,
    heartbeatMs: timing.heartbeatUs / 1000,
    suspectAfterMs: timing.suspectAfterUs / 1000,
    resendAfterMs: timing.resendAfterUs / 1000,
    order,
    durability,
    journal,
    snapshotBytes,
    tree: parents,
    leaders: placement,
    service,
    trace,
  };
  const wanted: Partial<Record<OptionName, unknown>> = {
    ...given,
    tree: given.tree && parentsOf(given.tree, groups),
    leaders: given.leaders && placementOf({ groups, replicas, hosts }, given.leaders),
    service: given.service && serviceUrl(given.service, directory),
    trace: given.trace && resolve(directory, given.trace),
    journal: given.journal && resolve(directory, given.journal),
  };
  return OPTION_NAMES.filter(
    (option) =>
      wanted[option] !== undefined &&
      option in present &&
      !isDeepStrictEqual(wanted[option], present[option]),
  );
}

function parentsOf(tree: NonNullable<ClusterOptions['tree']>, groups: number): readonly number[] {
  return new Overlay(typeof tree === 'string' ? parseTree(tree, groups) : [...tree]).parents;
}

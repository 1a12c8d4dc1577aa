/** Parses options that name groups: `1,4`, or `g1,g4`. */
import { InvalidArgumentError } from 'commander';

export function groupList(text: string): number[] {
  return text.split(',').map((part) => group(part.trim()));
}

/** Does not check whether the cluster has such a group. */
export function group(text: string): number {
  const [, number] = /^g?(\d{1,4})$/.exec(text) ?? [];
  if (number !== undefined) return Number(number);
  throw new InvalidArgumentError('Expected the number of a group, such as 4 or g4.');
}

/**
 * Measures several things in rounds: each of them once in a round, every other round in reverse order. So a disturbance from
 * outside affects all alike, whether it comes suddenly or grows.
 */

/** @returns for each round: the results in the order of `subjects`, whatever the order of measuring */
export async function inRounds<Subject, Result>(
  count: number,
  subjects: readonly Subject[],
  measure: (subject: Subject) => Promise<Result>,
): Promise<Result[][]> {
  const rounds: Result[][] = [];
  for (let round = 0; round < count; round++) {
    const results = new Map<Subject, Result>();
    const order = round % 2 === 0 ? subjects : subjects.toReversed();
    for (const subject of order) results.set(subject, await measure(subject));
    rounds.push(subjects.map((subject) => results.get(subject)!));
  }
  return rounds;
}

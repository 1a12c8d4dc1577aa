/**
 * A journal of changes, newest last, that can be undone. Everything that an action of the explorer changes goes through
 * it: fields of objects, elements of arrays, and words of typed arrays alike.
 */

type Target = Record<string | number, unknown>;

export class Journal {
  private readonly targets: Target[] = [];
  private readonly keys: (string | number)[] = [];
  private readonly before: unknown[] = [];

  /** Change a field, and remember what it was. */
  set<T extends object, K extends keyof T & (string | number)>(
    target: T,
    key: K,
    value: T[K],
  ): void {
    this.note(target, key, target[key]);
    target[key] = value;
  }

  /** A field that had this value before has been changed, or is about to be. */
  note(target: object, key: string | number, before: unknown): void {
    this.targets.push(target as Target);
    this.keys.push(key);
    this.before.push(before);
  }

  /** A place in the journal to go back to. */
  get mark(): number {
    return this.targets.length;
  }

  /** Undo all changes since `mark`, the newest first. */
  undo(mark: number): void {
    const { targets, keys, before } = this;
    for (let i = targets.length - 1; i >= mark; i--) targets[i][keys[i]] = before[i];
    targets.length = mark;
    keys.length = mark;
    before.length = mark;
  }

  /** What has happened so far is never undone. */
  clear(): void {
    this.targets.length = 0;
    this.keys.length = 0;
    this.before.length = 0;
  }
}

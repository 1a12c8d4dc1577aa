/** Values of Lua 5.1. Numbers are doubles, and strings are byte strings: each character is one byte. */

/** `undefined` is nil. */
export type LuaValue = undefined | boolean | number | string | LuaTable | LuaFunction | Opaque;

/** Missing arguments are nil, and those that are too many are ignored: JavaScript agrees with Lua. */
export type LuaFunction = (...args: LuaValue[]) => readonly LuaValue[];

/** A value that only has an identity, such as `cjson.null`. */
export class Opaque {
  readonly type = 'userdata';
}

/** What `error` raises: any value. */
export class LuaError {
  /** @param line  where it was raised */
  constructor(
    readonly value: LuaValue,
    readonly line: number,
  ) {}
}

/** The script has used up its steps. It can't catch that. */
export class Exhausted {
  constructor(readonly line: number) {}
}

/**
 * The elements 1 to n are an array. All others have slots in the order in which they came. A slot that was emptied is kept until the
 * next new key needs room, so that fields may be cleared while the table is traversed.
 */
export class LuaTable {
  /** How many empty elements and slots the last call of `next` has passed. */
  static skipped = 0;
  metatable: LuaTable | undefined;
  isReadonly = false;
  readonly array: LuaValue[] = [];
  #slots: Map<LuaValue, number> | undefined;
  #keys: LuaValue[] = [];
  #values: LuaValue[] = [];
  #used = 0;

  static of(elements: readonly LuaValue[]): LuaTable {
    const table = new LuaTable();
    for (const element of elements) table.array.push(element);
    table.#trim();
    return table;
  }

  static record(fields: Readonly<Record<string, LuaValue>>): LuaTable {
    const table = new LuaTable();
    for (const [name, value] of Object.entries(fields)) table.set(name, value);
    return table;
  }

  get(key: LuaValue): LuaValue {
    if (typeof key === 'number' && key >= 1 && key <= this.array.length && Number.isInteger(key)) {
      return this.array[key - 1];
    }
    if (this.#slots === undefined) return undefined;
    const slot = this.#slots.get(key);
    return slot === undefined ? undefined : this.#values[slot];
  }

  /** @param key  neither nil nor NaN. @returns whether it has taken a new slot */
  set(key: LuaValue, value: LuaValue): boolean {
    const { array } = this;
    if (typeof key === 'number' && key >= 1 && key <= array.length + 1 && Number.isInteger(key)) {
      if (key <= array.length) {
        array[key - 1] = value;
        if (value === undefined && key === array.length) this.#trim();
        return false;
      }
      if (value !== undefined) {
        array.push(value);
        this.#remove(key);
        this.#fetchElements();
        return false;
      }
    }
    return this.#setSlot(key, value);
  }

  /** A border: the element is there, and the next one is not. */
  get length(): number {
    return this.array.length;
  }

  /** @returns the entry after this key; undefined at the end */
  next(key: LuaValue): readonly [LuaValue, LuaValue] | undefined {
    const { array } = this;
    let at = 0;
    let slot = 0;
    if (typeof key === 'number' && key >= 1 && key <= array.length && Number.isInteger(key)) {
      at = key;
    } else if (key !== undefined) {
      at = array.length;
      // An element of the array that was cleared while the table is traversed may be gone.
      slot = (this.#slots?.get(key) ?? -1) + 1;
    }
    const first = at;
    for (; at < array.length; at++) {
      if (array[at] === undefined) continue;
      LuaTable.skipped = at - first;
      return [at + 1, array[at]];
    }
    const firstSlot = slot;
    for (; slot < this.#keys.length; slot++) {
      const value = this.#values[slot];
      if (value === undefined) continue;
      LuaTable.skipped = at - first + slot - firstSlot;
      return [this.#keys[slot], value];
    }
    LuaTable.skipped = at - first + slot - firstSlot;
    return undefined;
  }

  *entries(): Iterable<readonly [LuaValue, LuaValue]> {
    for (let entry = this.next(undefined); entry !== undefined; entry = this.next(entry[0])) {
      yield entry;
    }
  }

  #setSlot(key: LuaValue, value: LuaValue): boolean {
    this.#slots ??= new Map();
    const slot = this.#slots.get(key);
    if (slot !== undefined) {
      if (value === undefined && this.#values[slot] !== undefined) this.#used--;
      else if (value !== undefined && this.#values[slot] === undefined) this.#used++;
      this.#values[slot] = value;
      return false;
    }
    if (value === undefined) return false;
    if (this.#keys.length > 8 && this.#used < this.#keys.length / 2) this.#compact();
    this.#slots.set(key, this.#keys.length);
    this.#keys.push(key);
    this.#values.push(value);
    this.#used++;
    return true;
  }

  #remove(key: LuaValue): void {
    if (this.#slots?.has(key)) this.#setSlot(key, undefined);
  }

  /** What follows the last element of the array, and was set before it. */
  #fetchElements(): void {
    if (this.#used === 0) return;
    for (;;) {
      const key = this.array.length + 1;
      const slot = this.#slots!.get(key);
      const value = slot === undefined ? undefined : this.#values[slot];
      if (value === undefined) return;
      this.array.push(value);
      this.#setSlot(key, undefined);
    }
  }

  #compact(): void {
    const keys = this.#keys;
    const values = this.#values;
    this.#keys = [];
    this.#values = [];
    this.#slots = new Map();
    for (let i = 0; i < keys.length; i++) {
      if (values[i] === undefined) continue;
      this.#slots.set(keys[i], this.#keys.length);
      this.#keys.push(keys[i]);
      this.#values.push(values[i]);
    }
  }

  #trim(): void {
    const { array } = this;
    while (array.length > 0 && array[array.length - 1] === undefined) array.pop();
  }
}

export function typeName(value: LuaValue): string {
  if (value === undefined) return 'nil';
  if (value instanceof LuaTable) return 'table';
  if (value instanceof Opaque) return value.type;
  return typeof value;
}

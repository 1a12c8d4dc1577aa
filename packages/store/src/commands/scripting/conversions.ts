/** Replies of commands as values of Lua, and what scripts return as replies. */

import { formatG } from '../../lua/numbers.js';
import { LuaTable, type LuaValue } from '../../lua/values.js';
import { formatDouble } from '../../resp/number.js';
import {
  BigNumber,
  BooleanReply,
  type Bytes,
  Double,
  ErrorReply,
  MapOrPairs,
  MapReply,
  NullArray,
  Pairs,
  Push,
  type Reply,
  SetReply,
  Simple,
  Verbatim,
} from '../../resp/reply.js';
import type { Protocol } from '../../resp/writer.js';

const INTEGER_MIN = -(2n ** 63n);

/** How deep a table may be that a script returns. */
const DEPTH_MAX = 1000;

export function toLuaValue(reply: Reply, protocol: Protocol): LuaValue {
  const convert = (item: Reply): LuaValue => toLuaValue(item, protocol);
  const list = (items: readonly Reply[]): LuaTable => LuaTable.of(items.map(convert));
  if (typeof reply === 'string' || typeof reply === 'number') return reply;
  if (typeof reply === 'bigint') return Number(reply);
  if (reply === null || reply instanceof NullArray) return protocol === 3 ? undefined : false;
  if (reply instanceof Simple) return LuaTable.record({ ok: reply.text });
  if (reply instanceof ErrorReply) return LuaTable.record({ err: reply.message });
  if (reply instanceof Double) {
    return protocol === 3
      ? LuaTable.record({ double: reply.value })
      : (reply.text ?? formatDouble(reply.value));
  }
  if (reply instanceof Verbatim) {
    const { text, format } = reply;
    if (protocol === 2) return text;
    return LuaTable.record({ verbatim_string: LuaTable.record({ format, string: text }) });
  }
  if (reply instanceof BooleanReply) return protocol === 3 ? reply.value : Number(reply.value);
  if (reply instanceof BigNumber) {
    return protocol === 3 ? LuaTable.record({ big_number: reply.digits }) : reply.digits;
  }
  if (reply instanceof SetReply) {
    if (protocol === 2) return list(reply.members);
    const members = new LuaTable();
    for (const member of reply.members) members.set(convert(member), true);
    return LuaTable.record({ set: members });
  }
  if (reply instanceof MapReply || reply instanceof MapOrPairs) {
    if (protocol === 3) {
      const map = new LuaTable();
      for (const [key, value] of reply.entries) map.set(convert(key), convert(value));
      return LuaTable.record({ map });
    }
    return list(reply instanceof MapReply ? reply.entries.flat() : reply.entries);
  }
  if (reply instanceof Pairs) return list(protocol === 3 ? reply.pairs : reply.pairs.flat());
  return list(reply instanceof Push ? reply.items : reply);
}

/** What a part of a reply counts for, so that a table that is in many places does not become an endless reply. */
const STEPS_PER_PART = 10;

/** @param protocol  that of the script. @param spend  counts steps */
export function toReply(
  value: LuaValue,
  protocol: Protocol,
  spend: (steps: number) => void,
  depth = 0,
): Reply {
  spend(STEPS_PER_PART + (typeof value === 'string' ? value.length >>> 5 : 0));
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return toInteger(value);
  if (typeof value === 'boolean') {
    if (protocol === 3) return new BooleanReply(value);
    return value ? 1 : null;
  }
  if (!(value instanceof LuaTable)) return null;
  if (depth > DEPTH_MAX) return new ErrorReply('ERR reached lua stack limit');
  return tableToReply(value, protocol, spend, depth + 1);
}

function tableToReply(
  table: LuaTable,
  protocol: Protocol,
  spend: (steps: number) => void,
  depth: number,
): Reply {
  const convert = (value: LuaValue): Reply => toReply(value, protocol, spend, depth);
  const error = table.get('err');
  if (typeof error === 'string') return new ErrorReply(oneLine(error));
  const status = table.get('ok');
  if (typeof status === 'string') return new Simple(oneLine(status));
  const double = table.get('double');
  if (typeof double === 'number') return new Double(double);
  const map = table.get('map');
  if (map instanceof LuaTable) {
    return new MapReply([...map.entries()].map(([key, item]) => [convert(key), convert(item)]));
  }
  const set = table.get('set');
  if (set instanceof LuaTable) {
    return new SetReply([...set.entries()].map(([key]) => convert(key)));
  }
  const digits = table.get('big_number');
  if (typeof digits === 'string') return new BigNumber(oneLine(digits));
  const verbatim = table.get('verbatim_string');
  if (verbatim instanceof LuaTable) {
    const text = verbatim.get('string');
    const format = verbatim.get('format');
    if (typeof text === 'string' && typeof format === 'string') return verbatimOf(text, format);
  }
  const items: Reply[] = [];
  for (let i = 1; table.get(i) !== undefined; i++) {
    items.push(convert(table.get(i)));
  }
  return items;
}

/** A format has three characters. */
function verbatimOf(text: Bytes, format: Bytes): Verbatim {
  return new Verbatim(text, format.slice(0, 3).padEnd(3));
}

/** As a cast of C to 64 bits. */
function toInteger(value: number): number | bigint {
  const integer = Math.trunc(value);
  if (Number.isSafeInteger(integer)) return integer === 0 ? 0 : integer;
  return Math.abs(value) < 2 ** 63 ? BigInt(integer) : INTEGER_MIN;
}

/** Arguments of commands are strings. */
export function toArgument(value: LuaValue): Bytes | undefined {
  if (typeof value === 'string') return value;
  if (typeof value !== 'number') return undefined;
  return Number.isSafeInteger(value) ? String(value) : formatG(value, 17);
}

function oneLine(text: string): string {
  return text.replace(/[\r\n]/g, ' ');
}

/**
 * The protocol of an etcd client: Protocol Buffers in gRPC calls in HTTP/2 frames. Called by `etcd.ts`. It is written by hand
 * because `node:http2` needs two thirds of the CPU time that all three servers need together for a call, which would distort
 * the measurement. This code needs a tenth of that.
 */

const VARINT = 0;
const LENGTH_DELIMITED = 2;

/** A field that contains bytes or a message. */
export function encodeField(field: number, content: Uint8Array): Buffer {
  const key = (field << 3) | LENGTH_DELIMITED;
  return Buffer.concat([encodeVarint(key), encodeVarint(content.length), content]);
}

export function encodePut(key: string, value: Uint8Array): Buffer {
  return Buffer.concat([encodeField(1, Buffer.from(key)), encodeField(2, value)]);
}

/** A transaction without conditions. */
export function encodePuts(puts: readonly Uint8Array[]): Buffer {
  return Buffer.concat(puts.map((put) => encodeField(2, encodeField(2, put))));
}

/** Fields by number; the last one of a repeated field. Supports only the two kinds that etcd's answers contain. */
export function decodeFields(bytes: Buffer): Map<number, bigint | Buffer> {
  const fields = new Map<number, bigint | Buffer>();
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) throw new Error('a field ends too early');
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const key = Number(varint());
    const kind = key & 7;
    const value = varint();
    if (kind === VARINT) {
      fields.set(key >> 3, value);
    } else if (kind === LENGTH_DELIMITED) {
      fields.set(key >> 3, bytes.subarray(at, at + Number(value)));
      at += Number(value);
    } else {
      throw new Error(`a field of unknown kind ${kind}`);
    }
  }
  return fields;
}

function encodeVarint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  bytes.push(rest);
  return Buffer.from(bytes);
}

/** A gRPC message: a flag (not compressed), the length, the message. */
export function encodeGrpc(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

export const FRAME = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
} as const;

export const FLAG = { endStream: 1, acknowledgement: 1, endHeaders: 4 } as const;

const FRAME_HEAD_BYTES = 9;

export const PREFACE: Buffer = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

export function encodeFrame(
  type: number,
  flags: number,
  stream: number,
  content: Uint8Array,
): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEAD_BYTES + content.length);
  frame.writeUIntBE(content.length, 0, 3);
  frame[3] = type;
  frame[4] = flags;
  frame.writeUInt32BE(stream, 5);
  frame.set(content, FRAME_HEAD_BYTES);
  return frame;
}

/** A header block of literals without indexing, so the receiver's table stays empty. */
export function encodeHeaders(headers: Readonly<Record<string, string>>): Buffer {
  const text = (value: string): Buffer => {
    const bytes = Buffer.from(value);
    if (bytes.length > 126) throw new Error(`too long for a header: ${value}`);
    return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  };
  return Buffer.concat(
    Object.entries(headers).flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]),
  );
}

export type OnFrame = (type: number, flags: number, stream: number, content: Buffer) => void;

/** Splits a byte stream into frames. Chunks may begin and end anywhere. */
export class FrameReader {
  private bytes: Buffer = Buffer.alloc(0);

  constructor(private readonly onFrame: OnFrame) {}

  push(chunk: Buffer): void {
    const bytes = this.bytes.length > 0 ? Buffer.concat([this.bytes, chunk]) : chunk;
    let at = 0;
    while (at + FRAME_HEAD_BYTES <= bytes.length) {
      const end = at + FRAME_HEAD_BYTES + bytes.readUIntBE(at, 3);
      if (end > bytes.length) break;
      const stream = bytes.readUInt32BE(at + 5) & 0x7fffffff;
      this.onFrame(bytes[at + 3], bytes[at + 4], stream, bytes.subarray(at + 9, end));
      at = end;
    }
    this.bytes = bytes.subarray(at);
  }
}

/** Counts the replies in a stream of bytes, and checks them, without making values of them: so the load costs little. */

const [PLUS, MINUS, COLON, DOLLAR, STAR, CR] = [43, 45, 58, 36, 42, 13];
const NOTHING = Buffer.alloc(0);

export class ReplyCounter {
  /** A reply that has not come as a whole. */
  private rest = NOTHING;
  /** How many elements of the present reply are to come. */
  private open = 1;

  /**
   * @param chunk  need not stay as it is
   * @returns how many replies are complete now
   * @throws if a reply is an error, null or a negative number, or zero: a load sends nothing that has such a reply. A WAIT that no
   *   replica has answered has the reply 0
   */
  push(chunk: Buffer): number {
    const bytes = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk]);
    let at = 0;
    let count = 0;
    for (let end = this.endOf(bytes, at); end > 0; end = this.endOf(bytes, at)) {
      at = end;
      if (this.open > 0) continue;
      count++;
      this.open = 1;
    }
    this.rest = at === bytes.length ? NOTHING : Buffer.from(bytes.subarray(at));
    return count;
  }

  /** @returns where the element ends that begins there, or the head of an array; 0 if it has not come as a whole */
  private endOf(bytes: Buffer, at: number): number {
    const cr = bytes.indexOf(CR, at);
    if (cr < 0 || cr + 1 >= bytes.length) return 0;
    const type = bytes[at];
    if (type === MINUS || (type !== PLUS && bytes[at + 1] - 48 <= 0)) {
      throw new Error(`the reply was ${bytes.toString('latin1', at, cr)}`);
    }
    let end = cr + 2;
    if (type === DOLLAR) {
      end += numberIn(bytes, at + 1, cr) + 2;
      if (end > bytes.length) return 0;
    } else if (type === STAR) this.open += numberIn(bytes, at + 1, cr);
    else if (type !== PLUS && type !== COLON) throw new Error(`no reply begins with byte ${type}`);
    this.open--;
    return end;
  }
}

function numberIn(bytes: Buffer, from: number, to: number): number {
  let value = 0;
  for (let i = from; i < to; i++) value = value * 10 + bytes[i] - 48;
  return value;
}

/** Numbers in rows of `width`, first in, first out. Allocated once; it grows if it must. */
export class RowQueue {
  private rows: Float64Array;
  private firstRow = 0;
  private endRow = 0;

  constructor(
    private readonly width: number,
    /** A power of two. */
    private size = 64,
  ) {
    this.rows = new Float64Array(width * size);
  }

  get isEmpty(): boolean {
    return this.firstRow === this.endRow;
  }

  /** Rows are counted from the first ever. */
  get first(): number {
    return this.firstRow;
  }

  get end(): number {
    return this.endRow;
  }

  /** Room for one more row; returns where it is, for `set`. */
  add(): number {
    if (this.endRow - this.firstRow === this.size) this.grow();
    return this.endRow++;
  }

  get(row: number, column: number): number {
    return this.rows[this.at(row, column)]!;
  }

  set(row: number, column: number, value: number): void {
    this.rows[this.at(row, column)] = value;
  }

  /** Drop the first row. */
  shift(): void {
    this.firstRow++;
  }

  clear(): void {
    this.firstRow = this.endRow;
  }

  private grow(): void {
    const larger = new RowQueue(this.width, this.size * 2);
    for (let row = this.firstRow; row < this.endRow; row++) {
      for (let column = 0; column < this.width; column++) {
        larger.set(row, column, this.get(row, column));
      }
    }
    this.rows = larger.rows;
    this.size = larger.size;
  }

  private at(row: number, column: number): number {
    return (row & (this.size - 1)) * this.width + column;
  }
}

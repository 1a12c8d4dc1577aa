/**
 * Places on earth as the scores of sorted sets. Longitude and latitude are each cut in two halves 26 times; the bits that say which
 * half it is are interleaved, from high ones to low ones, to a number of 52 bits. So places of one cell of the grid have scores that
 * follow each other, whatever the size of the cell.
 */

/** How often each of the two is halved. */
export const STEPS = 26;

export interface Place {
  readonly longitude: number;
  readonly latitude: number;
}

/** The web's maps end here; beyond, cells would become too narrow. */
export const LATITUDE_MAX = 85.05112878;
export const LONGITUDE_MAX = 180;

/** In metres, as Redis has it. */
export const EARTH_RADIUS = 6372797.560856;

/** A cell of the grid that has 2^steps columns and rows. */
export interface Cell {
  readonly column: number;
  readonly row: number;
  readonly steps: number;
}

/** The edges of a cell, in degrees. */
export interface Area {
  readonly west: number;
  readonly east: number;
  readonly south: number;
  readonly north: number;
}

/** @param latitudeMax  the grid reaches from its negative to it */
export function cellOf(place: Place, steps: number, latitudeMax = LATITUDE_MAX): Cell {
  const size = 2 ** steps;
  const column = ((place.longitude + LONGITUDE_MAX) / (2 * LONGITUDE_MAX)) * size;
  const row = ((place.latitude + latitudeMax) / (2 * latitudeMax)) * size;
  return { column: Math.floor(column), row: Math.floor(row), steps };
}

export function areaOf({ column, row, steps }: Cell): Area {
  const size = 2 ** steps;
  const longitude = (at: number) => -LONGITUDE_MAX + (at / size) * (2 * LONGITUDE_MAX);
  const latitude = (at: number) => -LATITUDE_MAX + (at / size) * (2 * LATITUDE_MAX);
  return {
    west: longitude(column),
    east: longitude(column + 1),
    south: latitude(row),
    north: latitude(row + 1),
  };
}

/** The cell so many columns to the east and rows to the north. The grid has no edges: it goes on at its other side. */
export function neighbour({ column, row, steps }: Cell, east: number, north: number): Cell {
  return { column: moved(column, east, steps), row: moved(row, north, steps), steps };
}

/** What is exactly at the eastern or northern edge is in a column or row beyond, and stays there. */
function moved(index: number, by: number, steps: number): number {
  const size = 2 ** steps;
  return by === 0 ? index : (index + by + size) % size;
}

/** The bits of the column and of the row, interleaved. */
export function bitsOf({ column, row }: Cell): number {
  return 2 * spread(column) + spread(row);
}

export function scoreOf(place: Place): number {
  return bitsOf(cellOf(place, STEPS));
}

/** The scores of all places in a cell: from the first one to before the second one. */
export function scoresOf(cell: Cell): readonly [from: number, to: number] {
  const scale = 4 ** (STEPS - cell.steps);
  const bits = bitsOf(cell);
  return [bits * scale, (bits + 1) * scale];
}

/** The middle of the smallest cell. */
export function placeOf(anyScore: number): Place {
  const score = Math.trunc(anyScore);
  const column = gather(Math.floor(score / 2));
  const { west, east, south, north } = areaOf({ column, row: gather(score), steps: STEPS });
  return {
    longitude: clamped((west + east) / 2, LONGITUDE_MAX),
    latitude: clamped((south + north) / 2, LATITUDE_MAX),
  };
}

function clamped(value: number, max: number): number {
  return Math.max(-max, Math.min(max, value));
}

/** The great-circle distance in metres. */
export function distance(a: Place, b: Place): number {
  const v = Math.sin((radians(b.longitude) - radians(a.longitude)) / 2);
  const latitudeA = radians(a.latitude);
  const latitudeB = radians(b.latitude);
  if (v === 0) return EARTH_RADIUS * Math.abs(latitudeB - latitudeA);
  const u = Math.sin((latitudeB - latitudeA) / 2);
  const square = u * u + Math.cos(latitudeA) * Math.cos(latitudeB) * v * v;
  return 2 * EARTH_RADIUS * Math.asin(Math.sqrt(square));
}

export function radians(degrees: number): number {
  return degrees * (Math.PI / 180);
}

export function degrees(radians: number): number {
  return radians / (Math.PI / 180);
}

// ── Bits ──

const HALF_STEPS = STEPS / 2;
const HALF = 2 ** HALF_STEPS;

/** Puts a zero before each of the 26 bits. */
function spread(bits: number): number {
  return spreadHalf(Math.floor(bits / HALF)) * HALF * HALF + spreadHalf(bits % HALF);
}

function spreadHalf(bits: number): number {
  let x = bits;
  x = (x | (x << 8)) & 0x00ff00ff;
  x = (x | (x << 4)) & 0x0f0f0f0f;
  x = (x | (x << 2)) & 0x33333333;
  return (x | (x << 1)) & 0x55555555;
}

/** Every other bit of 52, beginning with the lowest. */
function gather(bits: number): number {
  return gatherHalf(Math.floor(bits / (HALF * HALF))) * HALF + gatherHalf(bits % (HALF * HALF));
}

function gatherHalf(bits: number): number {
  let x = bits & 0x55555555;
  x = (x | (x >> 1)) & 0x33333333;
  x = (x | (x >> 2)) & 0x0f0f0f0f;
  x = (x | (x >> 4)) & 0x00ff00ff;
  return (x | (x >> 8)) & 0x0000ffff;
}

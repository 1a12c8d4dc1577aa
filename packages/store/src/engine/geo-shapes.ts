/** Circles and rectangles on earth, and the cells of the grid that cover them. */

import {
  type Area,
  areaOf,
  bitsOf,
  type Cell,
  cellOf,
  degrees,
  distance,
  EARTH_RADIUS,
  neighbour,
  type Place,
  radians,
  STEPS,
} from './geohash.js';

/** Lengths are in metres. */
export type Shape =
  | { readonly centre: Place; readonly radius: number }
  | { readonly centre: Place; readonly width: number; readonly height: number };

/** @returns the distance from the centre; undefined if the place is outside */
export function distanceInside(shape: Shape, place: Place): number | undefined {
  const { centre } = shape;
  if ('radius' in shape) {
    const metres = distance(centre, place);
    return metres > shape.radius ? undefined : metres;
  }
  const alongLatitude = distance(place, {
    longitude: centre.longitude,
    latitude: place.latitude,
  });
  const alongLongitude = distance(place, {
    longitude: place.longitude,
    latitude: centre.latitude,
  });
  if (alongLatitude > shape.width / 2 || alongLongitude > shape.height / 2) return undefined;
  return distance(centre, place);
}

/** The cell of the centre and those around it that are needed, in the order in which Redis visits them. */
export function cellsOf(shape: Shape): readonly Cell[] {
  const { centre } = shape;
  const bounds = boundsOf(shape);
  const radius =
    'radius' in shape ? shape.radius : Math.sqrt((shape.width / 2) ** 2 + (shape.height / 2) ** 2);
  let steps = stepsOf(radius, centre.latitude);
  let middle = cellOf(centre, steps);
  if (steps > 1 && !covers(middle, bounds)) middle = cellOf(centre, --steps);
  const area = areaOf(middle);
  const cells = AROUND.filter(([east, north]) => steps < 2 || isNeeded(east, north, area, bounds));
  return withoutRepeats(cells.map(([east, north]) => neighbour(middle, east, north)));
}

/** Columns to the east and rows to the north. */
const AROUND: readonly (readonly [east: number, north: number])[] = [
  [0, 0],
  [0, 1],
  [0, -1],
  [1, 0],
  [-1, 0],
  [1, 1],
  [-1, 1],
  [1, -1],
  [-1, -1],
];

/** The smallest area in degrees that has the shape inside, about. */
function boundsOf(shape: Shape): Area {
  const { longitude, latitude } = shape.centre;
  const [halfWidth, halfHeight] =
    'radius' in shape ? [shape.radius, shape.radius] : [shape.width / 2, shape.height / 2];
  const up = degrees(halfHeight / EARTH_RADIUS);
  const nearPole = latitude < 0 ? latitude - up : latitude + up;
  const aside = degrees(halfWidth / EARTH_RADIUS / Math.cos(radians(nearPole)));
  return {
    west: longitude - aside,
    east: longitude + aside,
    south: latitude - up,
    north: latitude + up,
  };
}

/** Half of the equator, in metres, as Redis has it. */
const MERCATOR_MAX = 20037726.37;

/** How often to halve so that nine cells cover a circle. */
function stepsOf(radius: number, latitude: number): number {
  if (radius === 0) return STEPS;
  let steps = -1;
  for (let range = radius; range < MERCATOR_MAX; range *= 2) steps++;
  const towardsPole = Math.abs(latitude);
  if (towardsPole > 66) steps--;
  if (towardsPole > 80) steps--;
  return Math.max(1, Math.min(STEPS, steps));
}

/** Whether the cell and those around it cover the area. */
function covers(middle: Cell, bounds: Area): boolean {
  return (
    areaOf(neighbour(middle, 0, 1)).north >= bounds.north &&
    areaOf(neighbour(middle, 0, -1)).south <= bounds.south &&
    areaOf(neighbour(middle, 1, 0)).east >= bounds.east &&
    areaOf(neighbour(middle, -1, 0)).west <= bounds.west
  );
}

/** Whether a cell next to the middle one may have a part of the shape. */
function isNeeded(east: number, north: number, middle: Area, bounds: Area): boolean {
  if (north < 0 && middle.south < bounds.south) return false;
  if (north > 0 && middle.north > bounds.north) return false;
  if (east < 0 && middle.west < bounds.west) return false;
  return !(east > 0 && middle.east > bounds.east);
}

/** In a coarse grid, a cell can be its own neighbour. As in Redis, the one before is left out, unless that is the middle one. */
function withoutRepeats(cells: readonly Cell[]): readonly Cell[] {
  return cells.filter((cell, i) => i < 2 || bitsOf(cell) !== bitsOf(cells[i - 1]));
}

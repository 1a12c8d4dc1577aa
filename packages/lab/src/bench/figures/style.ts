/**
 * The styles of lines. A system has the same colour and marker in every figure. The colours follow Okabe and Ito, so that
 * colour-blind readers can distinguish them, and markers differ as well.
 */

export type Marker = 'circle' | 'square' | 'triangle' | 'diamond' | 'wedge' | 'cross' | 'ring';

export interface Style {
  readonly colour: string;
  readonly marker: Marker;
  /** As in SVG: lengths of dashes and gaps. */
  readonly dash?: string;
}

const BLUE = '#0072b2';
const GREEN = '#009e73';
const VERMILION = '#d55e00';
const BLACK = '#222222';
const GREY = '#8a8a8a';
const PURPLE = '#b0559b';
const ORANGE = '#c98a00';
const SKY = '#4ba3dd';
const NIGHT = '#123f66';

const SYSTEMS: Readonly<Record<string, Style>> = {
  'TRAM base': { colour: BLUE, marker: 'circle' },
  'TRAM breadth': { colour: GREEN, marker: 'square' },
  'TRAM depth': { colour: VERMILION, marker: 'triangle' },
  RamCast: { colour: BLACK, marker: 'diamond', dash: '6 3' },
  'RamCast lean': { colour: GREY, marker: 'ring', dash: '6 3' },
  ByzCast: { colour: PURPLE, marker: 'wedge', dash: '2 3' },
  Skeen: { colour: ORANGE, marker: 'cross', dash: '2 3' },
};

/** For lines that are variants of one system. */
const VARIANTS: readonly Style[] = [
  { colour: NIGHT, marker: 'circle' },
  { colour: BLUE, marker: 'square' },
  { colour: SKY, marker: 'triangle' },
  { colour: NIGHT, marker: 'ring', dash: '6 3' },
  { colour: SKY, marker: 'diamond', dash: '6 3' },
];

/** The style of a system by its name; of another line by its place. */
export function styleOf(name: string, place: number): Style {
  return SYSTEMS[name] ?? VARIANTS[place % VARIANTS.length];
}

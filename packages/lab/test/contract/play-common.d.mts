/** The types of play-common.mjs, for the suite. */
export const PLACE: {
  readonly told: number;
  readonly answered: number;
  readonly block: number;
};

/** The public exports of `tram`, and nothing else. */

export {};

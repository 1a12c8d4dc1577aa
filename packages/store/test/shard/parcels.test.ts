import { expect, it } from 'vitest';
import { KEPT_MS, Parcels } from '../../src/shard/parcels.js';

const piece = (...bytes: number[]): Uint8Array => Uint8Array.from(bytes);

it('an upload has all its pieces', () => {
  const parcels = new Parcels();
  parcels.upload('u', 0, 3, piece(1, 2), 100);
  parcels.upload('u', 2, 3, piece(3), 200);
  parcels.dropOld(150);
  expect(parcels.take('u')).toEqual(Buffer.from([1, 2, 3]));
  expect(parcels.take('u')).toBeUndefined();
});

it('an upload of which a piece was dropped is not there', () => {
  const parcels = new Parcels();
  parcels.upload('u', 0, 3, piece(1, 2), 100);
  parcels.dropOld(100);
  parcels.upload('u', 2, 3, piece(3), 200);
  expect(parcels.take('u')).toBeUndefined();
});

it('a reply is kept for as long as it is being fetched', () => {
  const parcels = new Parcels();
  const number = parcels.store(piece(1, 2, 3), 0);
  expect(parcels.fetch(number, 0, 1, KEPT_MS - 1)).toEqual(piece(1));
  parcels.dropOld(KEPT_MS);
  expect(parcels.fetch(number, 1, 2, KEPT_MS)).toEqual(piece(2));
  parcels.dropOld(2 * KEPT_MS);
  expect(parcels.fetch(number, 2, 3, 2 * KEPT_MS)).toEqual(piece());
});

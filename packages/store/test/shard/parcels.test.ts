import { expect, it } from 'vitest';
import { Parcels } from '../../src/shard/parcels.js';

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

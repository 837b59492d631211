import { expect, test } from 'vitest';
import { driveFuzz } from '../fuzz/drive.ts';
import { adminToken } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000);
const rounds = Number(process.env['FUZZ_ROUNDS'] ?? 1500);

test(`API-9: ${rounds} requests of seed ${seed} never make the server fail`, async () => {
  const server = await withServer();
  const { faults } = await driveFuzz({
    url: server.url,
    token: adminToken,
    seed,
    from: 0,
    to: rounds,
  });
  expect(faults).toEqual([]);
}, 120_000);

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@wheelhouse/machinery';
import { storeSuite } from '../suite.ts';
import { openEmbeddedStore } from './embedded-store.ts';

storeSuite({
  name: 'embedded',
  open: async () => {
    const directory = await mkdtemp(join(tmpdir(), 'wheelhouse-store-'));
    const store = await openEmbeddedStore({ directory, clock: systemClock });
    return {
      store,
      dispose: async () => {
        await store.close();
        await rm(directory, { recursive: true, force: true });
      },
    };
  },
});

import { type Clock, silentLogger } from '@wheelhouse/machinery';
import { openEmbeddedStore, type Store, StoreError } from '@wheelhouse/store';
import { SimulatedDisk } from './simulated-disk.ts';
import { mount, simulatedRoot } from './simulated-files.ts';
import type { Backend } from './simulated-store.ts';
import type { Truth } from './truth.ts';
import type { World } from './world.ts';

/** Maximum number of attempts to start a process on a failing disk. */
const attemptsMax = 100;
const directory = `${simulatedRoot}/store`;

/**
 * The real embedded store on a disk that fails, writes short, and loses power. Every process that
 * starts must find everything that earlier processes have shown.
 */
export function logBackend({ world, truth }: { world: World; truth: Truth }): Backend {
  const disk = new SimulatedDisk(world, directory);
  mount(disk);
  let store: Store | undefined;
  return {
    kind: 'log',
    async open(clock) {
      disk.start();
      const opened = await openSoon(clock);
      store = opened;
      await truth.expectAllIn(opened);
      await truth.follow(opened);
      return {
        store: opened,
        async crash() {
          const cause = world.random.pick(['killed', 'power lost'] as const);
          world.note(`the process ends: ${cause}`);
          world.dropDeferred();
          disk.end(cause);
        },
        cutWatch: () => {},
      };
    },
    async compact(revision) {
      // Not awaited: the disk may fail, and the process may end.
      store?.compact(revision).catch(() => {});
    },
  };
}

/** Retries until the disk does not fail. Rejects at once if the data is damaged or locked. */
async function openSoon(clock: Clock): Promise<Store> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await openEmbeddedStore({ directory, clock, logger: silentLogger });
    } catch (error) {
      const isPassing =
        error instanceof StoreError && (error.code === 'disk-failed' || error.code === 'no-space');
      const isHostError = (error as NodeJS.ErrnoException).syscall !== undefined;
      if ((!isPassing && !isHostError) || attempt === attemptsMax) throw error;
    }
  }
}

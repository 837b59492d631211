/** Additional exports for tests, benchmarks, and the siege. Not stable. */

export type {
  DeleteRequest,
  RangeRequest,
  RangeResult,
  StoreSnapshot,
  WatchRequest,
} from './contract.ts';
export { tryKernelLock } from './embedded/kernel-lock.ts';
export {
  freshStore,
  hasEtcd,
  startTestCluster,
  startTestEtcd,
  type TestCluster,
  type TestEtcd,
} from './etcd/testing.ts';
export { createMemoryStore } from './memory/memory-store.ts';
export { StoreModel } from './model.ts';

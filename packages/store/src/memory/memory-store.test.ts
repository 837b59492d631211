import { storeSuite } from '../suite.ts';
import { createMemoryStore } from './memory-store.ts';

storeSuite({
  name: 'memory',
  open: async () => {
    const store = createMemoryStore();
    return { store, dispose: () => store.close() };
  },
});

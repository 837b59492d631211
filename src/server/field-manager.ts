import type { Dialect } from '../dialect.ts';
import type { FieldManagerPort } from '../registry/contract.ts';

export function createFieldManager(_dialect: Dialect): FieldManagerPort {
  return {
    recordUpdate: () => {},
    applyPatch: () => {
      throw new Error('not wired');
    },
  };
}

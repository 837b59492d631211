import type { WriteContext } from '../registry/contract.ts';

/** Who the server is when a plugin writes. */
export const inside: WriteContext = {
  user: {
    name: 'system:apiserver',
    uid: '',
    groups: ['system:masters', 'system:authenticated'],
    extra: {},
  },
  dryRun: false,
  fieldManager: 'wheelhouse',
  warn: () => {},
  expired: () => false,
  origin: 'server',
};

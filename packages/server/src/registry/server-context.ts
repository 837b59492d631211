import type { WriteContext } from './contract.ts';
import { internalPermit } from './permit.ts';

/** Who the server is when it writes by itself: what every server has, and what plugins keep. */
export const serverContext: WriteContext = {
  permit: internalPermit('server'),
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

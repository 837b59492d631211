import type { AdmissionPlugin } from '../chain.ts';
import { refusal } from '../tools.ts';

/** Admits everything. */
export const alwaysAdmit: AdmissionPlugin = { name: 'AlwaysAdmit' };

/** Rejects every write, for tests. */
export const alwaysDeny: AdmissionPlugin = {
  name: 'AlwaysDeny',
  mutate(call) {
    throw refusal(call, 'admission control is denying all modifications');
  },
};

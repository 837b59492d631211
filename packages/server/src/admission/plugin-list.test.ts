import { StatusError } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { admissionPlugins } from './plugin-list.ts';
import { admissionCall, admissionTools } from './testing.ts';

const object = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' } };
const call = admissionCall({ resource: 'deployments.apps', object });
const pluginNamed = (name: string) =>
  admissionPlugins({ enabled: [name], only: true }, admissionTools({}))[0];

test('ADM-1: AlwaysDeny refuses everything', async () => {
  const refused = pluginNamed('AlwaysDeny')?.mutate?.(call);
  await expect(refused).rejects.toThrow(StatusError);
  await expect(refused).rejects.toThrow(
    'deployments.apps "web" is forbidden: admission control is denying all modifications',
  );
});

test('ADM-1: AlwaysAdmit refuses nothing', async () => {
  const plugin = pluginNamed('AlwaysAdmit');
  expect(plugin?.name).toBe('AlwaysAdmit');
  await plugin?.mutate?.(call);
  await plugin?.validate?.(call);
});

import { dialectOf, type JsonObject, runInOnePiece } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { violationsSteps } from './pod-security-checks.ts';
import type { Standard } from './pod-security-policy.ts';

const tools = { dialect: dialectOf('svc'), isOn: () => false };
const baseline: Standard = { level: 'baseline', minor: undefined };
const restricted: Standard = { level: 'restricted', minor: undefined };

function violationsOf(
  spec: JsonObject,
  standard: Standard = baseline,
  annotations: Record<string, string> = {},
): string[] {
  const found = runInOnePiece(violationsSteps(standard, { spec, annotations }, tools));
  return found.map(({ reason, detail }) => `${reason} (${detail})`);
}

const specWith = (more: JsonObject = {}) => ({ containers: [{ name: 'a', ...more }] });
const secure = (securityContext: JsonObject) => specWith({ securityContext });

test('TRUST-2: the containers of a pod are checked in steps', () => {
  const names = Array.from({ length: 2_000 }, (_, at) => `c${at}`);
  const add = Array.from({ length: 10_000 }, (_, at) => `CAP_${at}`);
  const [first = '', ...others] = names;
  const containers = [
    { name: first, securityContext: { capabilities: { add } } },
    ...others.map((name) => ({ name })),
  ];
  expect(
    [...violationsSteps(baseline, { spec: { containers }, annotations: {} }, tools)].length,
  ).toBeGreaterThan(10 + add.length / 250);
  const shown = add.sort().map((capability) => `"${capability}"`);
  expect(violationsOf({ containers })).toEqual([
    `non-default capabilities (container "c0" must not include ${shown.join(', ')} in ` +
      'securityContext.capabilities.add)',
  ]);
});

describe('ADM-1: baseline', () => {
  const cases: [string, JsonObject, string][] = [
    [
      'privileged',
      secure({ privileged: true }),
      'privileged (container "a" must not set securityContext.privileged=true)',
    ],
    [
      'host namespaces',
      { hostNetwork: true, hostPID: true, hostIPC: true },
      'host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)',
    ],
    [
      'host paths',
      { volumes: [{ name: 'v', hostPath: { path: '/' } }] },
      'hostPath volumes (volume "v")',
    ],
    [
      'host ports',
      {
        containers: [
          { name: 'a', ports: [{ hostPort: 80 }, { hostPort: 443 }] },
          { name: 'b', ports: [{ hostPort: 80 }] },
        ],
      },
      'hostPort (containers "a", "b" use hostPorts 443, 80)',
    ],
    [
      'capabilities',
      secure({ capabilities: { add: ['CHOWN', 'SYS_ADMIN', 'NET_RAW'] } }),
      'non-default capabilities (container "a" must not include "NET_RAW", "SYS_ADMIN" in securityContext.capabilities.add)',
    ],
    [
      'proc mounts',
      secure({ procMount: 'Unmasked' }),
      'procMount (container "a" must not set securityContext.procMount to "Unmasked")',
    ],
    [
      'SELinux',
      {
        ...secure({ seLinuxOptions: { user: 'u', role: 'r' } }),
        securityContext: { seLinuxOptions: { type: 'spc_t' } },
      },
      'seLinuxOptions (pod and container "a" set forbidden securityContext.seLinuxOptions: type "spc_t"; user may not be set; role may not be set)',
    ],
    [
      'seccomp',
      {
        ...secure({ seccompProfile: { type: 'Unconfined' } }),
        securityContext: { seccompProfile: { type: 'Unconfined' } },
      },
      'seccompProfile (pod and container "a" must not set securityContext.seccompProfile.type to "Unconfined")',
    ],
    [
      'sysctls',
      { securityContext: { sysctls: [{ name: 'kernel.msgmax' }, { name: 'net.ipv4.tcp_rmem' }] } },
      'forbidden sysctls (kernel.msgmax)',
    ],
    [
      'host processes',
      secure({ windowsOptions: { hostProcess: true } }),
      'hostProcess (container "a" must not set securityContext.windowsOptions.hostProcess=true)',
    ],
    [
      'AppArmor',
      secure({ appArmorProfile: { type: 'Unconfined' } }),
      'forbidden AppArmor profile (container "a" must not set AppArmor profile type to "Unconfined")',
    ],
  ];
  test.each(cases)('ADM-1: %s', (_, spec, expected) => {
    expect(violationsOf(spec)).toEqual([expected]);
    expect(violationsOf(spec, { level: 'privileged', minor: undefined })).toEqual([]);
  });

  test('ADM-1: a plain pod passes, and containers of every kind are checked', () => {
    expect(violationsOf(specWith())).toEqual([]);
    for (const member of ['initContainers', 'containers', 'ephemeralContainers']) {
      const spec = { [member]: [{ name: 'x', securityContext: { privileged: true } }] };
      expect(violationsOf(spec)).toHaveLength(1);
    }
  });

  test('ADM-1: annotations of older releases are checked', () => {
    const key = 'container.apparmor.security.beta.svc.io/a';
    expect(violationsOf(specWith(), baseline, { [key]: 'runtime/default' })).toEqual([]);
    expect(violationsOf(specWith(), baseline, { [key]: 'unconfined' })).toEqual([
      `forbidden AppArmor profile (annotation must not set AppArmor profile type to "${key}="unconfined"")`,
    ]);
    const seccomp = { 'seccomp.security.alpha.svc.io/pod': 'unconfined' };
    expect(violationsOf(specWith(), { level: 'baseline', minor: 18 }, seccomp)).toEqual([
      'seccompProfile (forbidden annotation seccomp.security.alpha.svc.io/pod="unconfined")',
    ]);
    expect(violationsOf(specWith(), baseline, seccomp)).toEqual([]);
  });

  test('ADM-1: a standard of an earlier release keeps its rules', () => {
    const spec = (name: string) => ({ securityContext: { sysctls: [{ name }] } });
    const at = (minor: number): Standard => ({ level: 'baseline', minor });
    expect(violationsOf(spec('net.ipv4.tcp_rmem'), at(31))).toHaveLength(1);
    expect(violationsOf(spec('net.ipv4.tcp_rmem'), at(32))).toEqual([]);
    expect(violationsOf(spec('net.ipv4.tcp_rmem'), at(99))).toEqual([]);
    expect(violationsOf(spec('net.ipv4.tcp_fin_timeout'), at(28))).toHaveLength(1);
    expect(violationsOf(spec('net.ipv4.tcp_fin_timeout'), at(29))).toEqual([]);
    const engine = { securityContext: { seLinuxOptions: { type: 'container_engine_t' } } };
    expect(violationsOf(engine, at(30))).toHaveLength(1);
    expect(violationsOf(engine, at(31))).toEqual([]);
  });
});

describe('ADM-1: restricted', () => {
  const good = {
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    ...secure({ allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } }),
  };
  test('ADM-1: a hardened pod passes, a plain one fails four checks', () => {
    expect(violationsOf(good, restricted)).toEqual([]);
    expect(violationsOf(specWith(), restricted)).toEqual([
      'allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false)',
      'unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"])',
      'runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true)',
      'seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
    ]);
  });

  const cases: [string, JsonObject, string][] = [
    [
      'volumes',
      {
        volumes: [
          { name: 'v', hostPath: { path: '/' } },
          { name: 'w', nfs: {} },
        ],
      },
      'restricted volume types (volumes "v", "w" use restricted volume types "hostPath", "nfs")',
    ],
    [
      'root, said outright',
      { securityContext: { ...good.securityContext, runAsNonRoot: false } },
      'runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)',
    ],
    [
      'the user 0',
      { securityContext: { ...good.securityContext, runAsUser: 0 } },
      'runAsUser=0 (pod must not set runAsUser=0)',
    ],
    [
      'a capability',
      secure({ allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'], add: ['CHOWN'] } }),
      'unrestricted capabilities (container "a" must not include "CHOWN" in securityContext.capabilities.add)',
    ],
  ];
  test.each(cases)('ADM-1: %s', (_, more, expected) => {
    expect(violationsOf({ ...good, ...more }, restricted)).toEqual([expected]);
  });

  test('ADM-1: a Windows pod may omit what has no meaning there', () => {
    const windows = { ...specWith(), os: { name: 'windows' } };
    expect(violationsOf(windows, restricted)).toEqual([
      'runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true)',
    ]);
    expect(violationsOf(windows, { level: 'restricted', minor: 24 })).toHaveLength(4);
  });

  test('ADM-1: the oldest releases have fewer checks', () => {
    const at = (minor: number) => violationsOf(specWith(), { level: 'restricted', minor });
    expect(at(22)).toHaveLength(4);
    expect(at(21)).toHaveLength(3);
    expect(at(18)).toHaveLength(2);
    expect(at(7)).toHaveLength(1);
  });
});

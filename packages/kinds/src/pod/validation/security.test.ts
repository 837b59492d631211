import { describe, expect, test } from 'vitest';
import { changed, created, plainPod, testPods } from '../../rules/rules.suite.ts';

const pod = 'spec.securityContext';
const container = 'spec.containers[0].securityContext';
const range = 'must be between 0 and 2147483647, inclusive';

describe('of a pod', () => {
  testPods([
    [{ [pod]: { fsGroup: 0, runAsUser: 1, runAsGroup: 2, supplementalGroups: [3] } }],
    [
      { [pod]: { fsGroup: -1, runAsUser: -2, runAsGroup: 2 ** 31, supplementalGroups: [0, -3] } },
      `${pod}.fsGroup: Invalid value: -1: ${range}`,
      `${pod}.runAsUser: Invalid value: -2: ${range}`,
      `${pod}.runAsGroup: Invalid value: 2147483648: ${range}`,
      `${pod}.supplementalGroups[1]: Invalid value: -3: ${range}`,
    ],
    [
      { 'spec.hostPID': true, 'spec.shareProcessNamespace': true },
      `${pod}.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled`,
    ],
    [
      { [pod]: { fsGroupChangePolicy: 'Never' } },
      `${pod}.fsGroupChangePolicy: Unsupported value: "Never": supported values: "Always", "OnRootMismatch"`,
    ],
    [
      { 'spec.hostNetwork': true, [pod]: { sysctls: [{ name: 'net.x' }, { name: 'a b' }] } },
      `${pod}.sysctls[0].name: Invalid value: "net.x": may not be specified when 'hostNetwork' is true`,
      `${pod}.sysctls[1].name: Invalid value: "a b": must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`,
    ],
    [
      { [pod]: { sysctls: [{ name: 'kernel.sem' }, { name: 'kernel.sem' }, { name: '' }] } },
      `${pod}.sysctls[1].name: Duplicate value: "kernel.sem"`,
      `${pod}.sysctls[2].name: Required value`,
    ],
    [
      { [pod]: { seccompProfile: {} } },
      `${pod}.seccompProfile.type: Required value: type is required when seccompProfile is set`,
    ],
    [
      { [pod]: { seccompProfile: { type: 'Localhost' } } },
      `${pod}.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost`,
    ],
    [
      { [pod]: { appArmorProfile: { type: 'Odd' } } },
      `${pod}.appArmorProfile.type: Unsupported value: "Odd": supported values: "Localhost", "RuntimeDefault", "Unconfined"`,
    ],
    [
      { [pod]: { appArmorProfile: { type: 'Localhost', localhostProfile: ' a' } } },
      `${pod}.appArmorProfile.localhostProfile: Invalid value: " a": must not be padded with whitespace`,
    ],
  ]);
});

describe('of a container', () => {
  testPods([
    [{ [container]: { runAsUser: -1 } }, `${container}.runAsUser: Invalid value: -1: ${range}`],
    [
      { [container]: { seccompProfile: { type: 'Localhost', localhostProfile: '../x' } } },
      `${container}.seccompProfile.localhostProfile: Invalid value: "../x": must not contain '..'`,
    ],
    [
      {
        [container]: { allowPrivilegeEscalation: false, capabilities: { add: ['CAP_SYS_ADMIN'] } },
      },
      `${container}: Invalid value: {"capabilities":{"add":["CAP_SYS_ADMIN"]},"allowPrivilegeEscalation":false}: cannot set \`allowPrivilegeEscalation\` to false and \`capabilities.Add\` CAP_SYS_ADMIN`,
    ],
    [
      { [container]: { allowPrivilegeEscalation: false, privileged: true } },
      `${container}: Invalid value: {"privileged":true,"allowPrivilegeEscalation":false}: cannot set \`allowPrivilegeEscalation\` to false and \`privileged\` to true`,
    ],
  ]);

  test('procMount stays the default', () => {
    const object = created(changed(plainPod(), { [`${container}.procMount`]: 'Unmasked' }));
    expect(object).toMatchObject({
      spec: { containers: [{ securityContext: { procMount: 'Default' } }] },
    });
  });
});

describe('on Windows', () => {
  const windows = `${container}.windowsOptions`;
  testPods([
    [
      { [windows]: { gmsaCredentialSpecName: 'A', gmsaCredentialSpec: '', runAsUserName: '' } },
      expect.stringContaining(`${windows}.gmsaCredentialSpecName: Invalid value: "A"`),
      `${windows}.gmsaCredentialSpec: Invalid value: "": gmsaCredentialSpec cannot be an empty string`,
      `${windows}.runAsUserName: Invalid value: "": runAsUserName cannot be an empty string`,
    ],
    [
      { [windows]: { runAsUserName: 'a\\b\\c' } },
      `${windows}.runAsUserName: Invalid value: "a\\\\b\\\\c": runAsUserName cannot contain more than one backslash`,
    ],
    [
      { [windows]: { runAsUserName: 'do?main\\ .' } },
      `${windows}.runAsUserName: Invalid value: "do?main\\\\ .": runAsUserName's Domain doesn't match the NetBios nor the DNS format`,
      `${windows}.runAsUserName: Invalid value: "do?main\\\\ .": runAsUserName's User cannot contain only periods or spaces`,
    ],
    [
      { [windows]: { hostProcess: true } },
      'spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers',
    ],
    [
      {
        'spec.hostNetwork': true,
        [windows]: { hostProcess: true },
        'spec.initContainers': [{ name: 'b', image: 'i' }],
      },
      'spec: Invalid value: "": If pod contains any hostProcess containers then all containers must be HostProcess containers',
    ],
    [
      { 'spec.os': { name: 'linux' }, [windows]: {} },
      `${windows}: Forbidden: windows options cannot be set for a linux pod`,
    ],
    [
      {
        'spec.os': { name: 'windows' },
        'spec.hostIPC': true,
        [pod]: { fsGroup: 1 },
        [container]: { privileged: true },
      },
      'spec.hostIPC: Forbidden: cannot be set for a windows pod',
      `${pod}.fsGroup: Forbidden: cannot be set for a windows pod`,
      `${container}.privileged: Forbidden: cannot be set for a windows pod`,
    ],
  ]);
});

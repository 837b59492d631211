// Runs integration targets of Ansible's collection kubernetes.core on both servers, with the
// controllers and played kubelets, and compares the outcomes of the tasks, and what failed.
//
// ANSIBLE_COLLECTION is the source folder of the collection in the version that `ansible-playbook`
// (ANSIBLE_PLAYBOOK) has installed.
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { haveControllers, startControllers } from './controllers.mjs';
import { playNodes } from './played-nodes.mjs';
import { onBoth, programPath } from './servers.mjs';
import { compareSession, plain } from './sessions.mjs';

const playbook = programPath({ variable: 'ANSIBLE_PLAYBOOK', name: 'ansible-playbook' });
const source = process.env.ANSIBLE_COLLECTION;
const usual =
  'k8s_append_hash k8s_apply k8s_crd k8s_delete k8s_gc k8s_generate_name k8s_info k8s_json_patch ' +
  'k8s_label_selectors k8s_lists k8s_merge_type k8s_patched k8s_taint k8s_user_impersonation ' +
  'k8s_validate lookup_k8s';
const targets = (process.env.PEERS_SUITES ?? usual).split(/[ ,]/);

/** Replaces names that differ in every run. */
const named = (text) => text.replace(/\b(test-|tmp)[a-z0-9]{5,}\b/g, '$1NAME');

function runTarget(target, server) {
  const file = join(server.directory, `${target}.yaml`);
  writeFileSync(
    file,
    JSON.stringify([
      {
        hosts: 'localhost',
        connection: 'local',
        gather_facts: false,
        vars: { ansible_python_interpreter: '{{ ansible_playbook_python }}' },
        roles: [target],
      },
    ]),
  );
  const env = {
    ...process.env,
    ANSIBLE_ROLES_PATH: join(source, 'tests', 'integration', 'targets'),
    ANSIBLE_NOCOLOR: '1',
    ANSIBLE_LOCALHOST_WARNING: 'False',
    K8S_AUTH_KUBECONFIG: server.kubeconfig,
    KUBECONFIG: server.kubeconfig,
  };
  const options = { cwd: server.directory, env, timeout: 600_000, maxBuffer: 256 * 1024 * 1024 };
  return new Promise((resolve) => {
    execFile(playbook, [file], options, (_error, stdout, stderr) => {
      const output = plain(`${stdout}${stderr}`, server);
      if (process.env.PEERS_KEEP) writeFileSync(join(server.directory, `${target}.log`), output);
      const recap = /^localhost\s+:.*$/m.exec(output)?.[0] ?? output.slice(-2000);
      const failed = output.match(/^(TASK .*|fatal: .*|failed: .*)$/gm) ?? [];
      const failures = failed.flatMap((line, index) =>
        line.startsWith('TASK')
          ? []
          : [`${failed[index - 1]?.slice(0, 200)}\n${line.slice(0, 1500)}`],
      );
      resolve(named([recap, ...failures].join('\n')));
    });
  });
}

async function play(server) {
  const controllers = startControllers(server);
  const nodes = playNodes(server, { names: ['peer-0', 'peer-1'] });
  const outputs = {};
  try {
    for (const target of targets) {
      outputs[target] = await runTarget(target, server);
      console.log(`${server.name} ${target}: ${outputs[target].split('\n')[0]}`);
    }
  } finally {
    await nodes.stop();
    await controllers.stop();
  }
  return outputs;
}

if (playbook === undefined || source === undefined || !haveControllers) {
  console.log('skipped: needs ANSIBLE_PLAYBOOK, ANSIBLE_COLLECTION, and the controllers');
} else {
  const galaxy = readFileSync(join(source, 'galaxy.yml'), 'utf8');
  compareSession({
    name: 'ansible',
    program: "Ansible's collection kubernetes.core",
    version: /^version: (.*)$/m.exec(galaxy)?.[1] ?? 'unknown',
    script: 'ansible.mjs',
    what: 'With controllers and played kubelets, integration targets: the outcomes of tasks and what fails,',
    step: 'targets',
    sides: await onBoth(play),
  });
}

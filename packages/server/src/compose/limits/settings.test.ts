import { expect, test } from 'vitest';
import { readOptions } from '../command-line.ts';

const apf = 'flowcontrol.apiserver.k8s.io/v1';

test.each(['api/all=false,v1=true', 'api/ga=false', `${apf}=false`, `api/ga=true,${apf}=false`])(
  'priority and fairness needs its objects, which --runtime-config=%s switches off',
  (config) => {
    const args = ['--dialect=kubernetes', `--runtime-config=${config}`];
    expect(() => readOptions(args)).toThrow(
      /^--runtime-config=\S+=false conflicts with --enable-priority-and-fairness=true$/,
    );
    expect(readOptions([...args, '--enable-priority-and-fairness=false']).kind).toBe('options');
    expect(readOptions([...args, `--runtime-config=${apf}=true`]).kind).toBe('options');
  },
);

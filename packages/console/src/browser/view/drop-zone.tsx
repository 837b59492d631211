import { useEffect, useState } from 'preact/hooks';
import type { ManifestFile } from '../model/editing.ts';
import { useApp } from './parts/app.ts';

/** Accepts manifest files dropped anywhere on the window and opens the apply page. */
export function DropZone() {
  const app = useApp();
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    const carriesFiles = (event: DragEvent): boolean =>
      event.dataTransfer?.types.includes('Files') === true;
    const over = (event: DragEvent): void => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent): void => {
      if (event.relatedTarget === null) setOver(false);
    };
    const drop = (event: DragEvent): void => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      setOver(false);
      void readFiles([...(event.dataTransfer?.files ?? [])]).then((files) => {
        app.dropped.current = files;
        if (app.workspace.route.page === 'apply') dispatchEvent(new Event(droppedEvent));
        else app.workspace.go({ page: 'apply' });
      });
    };
    addEventListener('dragover', over);
    addEventListener('dragleave', leave);
    addEventListener('drop', drop);
    return () => {
      removeEventListener('dragover', over);
      removeEventListener('dragleave', leave);
      removeEventListener('drop', drop);
    };
  }, [app]);
  return isOver ? <div class="drop-zone">Drop manifests to preview their changes</div> : null;
}

/** Notifies the open apply page of dropped files. */
export const droppedEvent = 'wheelhouse-dropped';

/** Maximum size of a file, which is also the server's limit for a request body. */
const bytesMax = 8 * 1024 * 1024;

/** The texts of files, or the reasons why they cannot be read. */
export function readFiles(files: readonly File[]): Promise<ManifestFile[]> {
  return Promise.all(
    files.map(async (file) => {
      const { name } = file;
      if (file.size > bytesMax) return { name, text: '', fault: 'the file is larger than 8 MiB' };
      return file.text().then(
        (text) => ({ name, text }),
        () => ({ name, text: '', fault: 'the file cannot be read' }),
      );
    }),
  );
}

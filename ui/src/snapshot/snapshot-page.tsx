import type { OpenFile } from '../api/types';
export function SnapshotPage({ file }: { file: OpenFile; files: OpenFile[] }) {
  return <p>{file.name}</p>;
}

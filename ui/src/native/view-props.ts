/** Properties that all views of a native snapshot share. */
import type { NativeSnapshot } from '../api/types';
import type { TraceViewProps } from '../trace/view-props';

export interface NativeViewProps extends TraceViewProps {
  /** The chosen snapshot. */
  shown: NativeSnapshot;
}

// SPDX-License-Identifier: Apache-2.0
//! Lists of CPUs as Linux writes them.

use std::fmt;
use std::str::FromStr;

/// Highest CPU number that is accepted, so that a damaged list takes bounded memory.
const MAX_CPU: usize = 8_191;

/// A set of CPUs, in ascending order. Its text form is that of Linux, such as `0-3,8`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuList(Vec<usize>);

impl CpuList {
    /// Creates a list of these CPUs.
    #[must_use]
    pub fn new(mut cpus: Vec<usize>) -> CpuList {
        cpus.sort_unstable();
        cpus.dedup();
        CpuList(cpus)
    }

    /// Creates a list from a mask as in `/sys/devices/virtual/workqueue/cpumask`: hexadecimal words of 32 bits, the
    /// highest first, separated by commas. Returns `None` for any other text.
    #[must_use]
    pub fn from_mask(text: &str) -> Option<CpuList> {
        let mut cpus = Vec::new();
        for (index, word) in text.trim().rsplit(',').enumerate() {
            let bits = u32::from_str_radix(word.trim(), 16).ok()?;
            cpus.extend(
                (0..32)
                    .filter(|bit| bits >> bit & 1 == 1)
                    .map(|bit| index * 32 + bit),
            );
        }
        Some(CpuList::new(cpus))
    }

    /// Returns true if the list has this CPU.
    #[must_use]
    pub fn has(&self, cpu: usize) -> bool {
        self.0.binary_search(&cpu).is_ok()
    }

    /// Returns true if the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the CPUs in ascending order.
    #[must_use]
    pub fn as_slice(&self) -> &[usize] {
        &self.0
    }

    /// Returns those CPUs of this list that `other` lacks.
    #[must_use]
    pub fn without(&self, other: &CpuList) -> CpuList {
        let missing = self.0.iter().copied().filter(|cpu| !other.has(*cpu));
        CpuList(missing.collect())
    }

    /// Returns the CPUs that are in both lists.
    #[must_use]
    pub fn common(&self, other: &CpuList) -> CpuList {
        let common = self.0.iter().copied().filter(|cpu| other.has(*cpu));
        CpuList(common.collect())
    }
}

impl FromStr for CpuList {
    type Err = String;

    fn from_str(text: &str) -> Result<CpuList, String> {
        let wrong = || format!("{text:?} is not a list of CPUs such as 0-3,8");
        let mut cpus = Vec::new();
        for part in text.trim().split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: usize = first.trim().parse().map_err(|_| wrong())?;
            let last: usize = last.trim().parse().map_err(|_| wrong())?;
            if first > last || last > MAX_CPU || cpus.len() > MAX_CPU {
                return Err(wrong());
            }
            cpus.extend(first..=last);
        }
        Ok(CpuList::new(cpus))
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        let mut separator = "";
        for run in self.0.chunk_by(|before, cpu| before + 1 == *cpu) {
            match run {
                [cpu] => write!(f, "{separator}{cpu}")?,
                [first, .., last] => write!(f, "{separator}{first}-{last}")?,
                [] => {}
            }
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_list_text_round_trips() {
        for text in ["0", "0-3", "0-3,8", "1,3,5-7"] {
            assert_eq!(text.parse::<CpuList>().unwrap().to_string(), text);
        }
        assert_eq!("\n".parse::<CpuList>().unwrap().to_string(), "none");
    }

    #[test]
    fn cpu_list_of_garbage_or_of_endless_ranges_is_rejected() {
        for text in [
            "a",
            "3-1",
            "0-4294967295",
            "1-",
            "-",
            "0x1",
            &"0-8191,".repeat(9),
        ] {
            assert!(text.parse::<CpuList>().is_err(), "{text}");
        }
    }

    #[test]
    fn cpu_list_from_a_mask_has_the_set_bits() {
        let list = CpuList::from_mask("1,80000003\n").unwrap();
        assert_eq!(list.as_slice(), [0, 1, 31, 32]);
        assert_eq!(CpuList::from_mask("zz"), None);
    }

    #[test]
    fn without_and_common_split_a_list() {
        let list = CpuList::new(vec![3, 1, 2, 3]);
        let other = CpuList::new(vec![2, 9]);
        assert_eq!(list.without(&other).as_slice(), [1, 3]);
        assert_eq!(list.common(&other).as_slice(), [2]);
    }
}

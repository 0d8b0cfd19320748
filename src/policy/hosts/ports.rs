//! Sets of ports.

use std::fmt;

/// A set of ports, never empty and never with port 0: `443`, `80,443`, `8000-8010`, `*`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ports(Vec<(u16, u16)>);

/// Why a text is not a set of ports.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PortsError {
    /// Not numbers from 1 to 65535.
    #[error("ports are numbers from 1 to 65535, such as `443`, `80,443`, `8000-8010`, or `*` for all")]
    Number,
    /// `0443`, which some programs read as another number.
    #[error("`{zeros}` begins with a zero: write `{plain}`")]
    Zero {
        /// What was written.
        zeros: String,
        /// The number without them.
        plain: u16,
    },
    /// A range that ends before it begins.
    #[error("a range of ports begins with the smaller one")]
    Backwards,
}

impl Ports {
    /// Every port.
    pub fn all() -> Self {
        Self(vec![(1, u16::MAX)])
    }

    /// What an entry without ports means: 80 and 443.
    pub fn web() -> Self {
        Self(vec![(80, 80), (443, 443)])
    }

    /// One port; none where it is 0.
    pub fn one(port: u16) -> Option<Self> {
        (port != 0).then(|| Self(vec![(port, port)]))
    }

    /// The set that a text means.
    ///
    /// # Errors
    /// What is no list of numbers and ranges.
    pub fn parse(text: &str) -> Result<Self, PortsError> {
        if text == "*" {
            return Ok(Self::all());
        }
        let number = |text: &str| {
            // Signs and blanks are not accepted.
            let plain = !text.is_empty() && text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
            let port = text.parse::<u16>().ok().filter(|port| plain && *port != 0);
            match port {
                Some(plain) if text.starts_with('0') => Err(PortsError::Zero {
                    zeros: text.to_owned(),
                    plain,
                }),
                Some(port) => Ok(port),
                None => Err(PortsError::Number),
            }
        };
        let mut ranges = Vec::new();
        for part in text.split(',') {
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(PortsError::Backwards);
            }
            ranges.push((first, last));
        }
        Ok(Self(merged(ranges)))
    }

    /// Whether the port is one of them.
    pub fn holds(&self, port: u16) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&port))
    }

    /// Whether the other set includes this one.
    pub fn are_within(&self, other: &Self) -> bool {
        let inside = |(first, last): &(u16, u16)| other.0.iter().any(|(a, b)| a <= first && last <= b);
        self.0.iter().all(inside)
    }

    /// The intersection; `None` if it is empty.
    pub fn and(&self, other: &Self) -> Option<Self> {
        let pairs = self.0.iter().flat_map(|a| other.0.iter().map(move |b| (a, b)));
        let both = pairs.map(|(a, b)| (a.0.max(b.0), a.1.min(b.1)));
        let both: Vec<_> = both.filter(|(first, last)| first <= last).collect();
        (!both.is_empty()).then(|| Self(merged(both)))
    }

    /// The union.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self(merged(self.0.iter().chain(&other.0).copied().collect()))
    }

    /// Its ranges, sorted and disjoint.
    pub(super) fn ranges(&self) -> &[(u16, u16)] {
        &self.0
    }
}

/// Sorts and merges ranges.
fn merged(mut ranges: Vec<(u16, u16)>) -> Vec<(u16, u16)> {
    ranges.sort_unstable();
    let mut disjoint: Vec<(u16, u16)> = Vec::with_capacity(ranges.len());
    for (first, last) in ranges {
        match disjoint.last_mut() {
            Some(before) if u32::from(first) <= u32::from(before.1) + 1 => before.1 = before.1.max(last),
            _ => disjoint.push((first, last)),
        }
    }
    disjoint
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == [(1, u16::MAX)] {
            return f.write_str("*");
        }
        for (index, (first, last)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            if first == last {
                write!(f, "{comma}{first}")?;
            } else {
                write!(f, "{comma}{first}-{last}")?;
            }
        }
        Ok(())
    }
}
